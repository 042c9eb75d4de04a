import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('../worker.mjs', import.meta.url));

/** Killed when this process ends, however it ends: one that is frozen would not notice. */
const children = new Set();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** Another process, which can be asked for what `worker.mjs` offers. */
export class Worker {
  #child;
  #calls = new Map();
  #lastId = 0;
  #exited;

  constructor(execArgv = []) {
    this.#child = fork(script, { serialization: 'advanced', execArgv });
    children.add(this.#child);
    this.#child.on('message', ({ id, result, error }) => {
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      if (error === undefined) call?.resolve(result);
      else call?.reject(new Error(error));
    });
    this.#exited = new Promise((resolve) => {
      this.#child.once('exit', resolve);
    }).then(() => {
      children.delete(this.#child);
      for (const { reject } of this.#calls.values()) reject(new Error('The process has ended.'));
      this.#calls.clear();
    });
  }

  /** @returns {Promise<any>} */
  ask(method, options = {}) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#child.send({ id, method, options });
    });
  }

  /** Without warning. */
  async kill() {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }
}

/** So many processes, for as long as `use` runs. */
export async function withWorkers(count, use, execArgv = []) {
  const workers = Array.from({ length: count }, () => new Worker(execArgv));
  try {
    return await use(workers);
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()));
  }
}
