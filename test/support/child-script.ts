import { spawn, type ChildProcess } from 'node:child_process';
import { compiledFile } from './compiled.js';

/** A TypeScript file in a process of its own, with the library as this process has it. */
export class ChildScript {
  /** Resolves with what it printed, or rejects with its errors when it ends otherwise than by itself. */
  readonly output: Promise<string>;
  readonly #process: ChildProcess;

  constructor(script: URL, args: readonly string[], nodeOptions: readonly string[] = []) {
    this.#process = spawn(process.execPath, [...nodeOptions, compiledFile(script), ...args], {
      env: { ...process.env, NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.output = this.#collect();
    this.output.catch(() => undefined); // for those who only kill it
  }

  get pid(): number {
    const { pid } = this.#process;
    if (pid === undefined) throw new Error('The process did not start.');
    return pid;
  }

  /** Ends it by SIGKILL, and resolves when it is gone. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.output.catch(() => undefined);
  }

  #collect(): Promise<string> {
    let [output, errors] = ['', ''];
    this.#process.stdout?.on('data', (bytes: Buffer) => (output += bytes.toString()));
    this.#process.stderr?.on('data', (bytes: Buffer) => (errors += bytes.toString()));
    return new Promise((resolve, reject) => {
      this.#process.once('error', reject);
      this.#process.once('close', (code, signal) => {
        if (code === 0) resolve(output);
        else reject(new Error(`Ended with ${String(code ?? signal)}: ${errors}`));
      });
    });
  }
}
