import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { LockModuleOptions } from 'nestjs-holdfast';
import { compiledFile } from '../support/compiled.js';
import { deferred, type Deferred } from '../support/eventually.js';

/** One line that the application printed. */
export interface Said {
  readonly event: string;
  /** Its wall clock. */
  readonly at: number;
  readonly id?: string;
  readonly name?: string;
  readonly detail?: string;
  readonly reason?: string;
}

/** Rejects when the application ends, even if no test waits for a line then. */
function nextLine(): Deferred<void> {
  const next = deferred();
  next.promise.catch(() => undefined);
  return next;
}

/** An application (orders.ts) in a process of its own. */
export class OrdersProcess {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #said: Said[] = [];
  readonly #ended = deferred();
  #heard = nextLine();
  #errors = '';

  private constructor(options: LockModuleOptions) {
    const file = compiledFile(new URL('orders.ts', import.meta.url));
    this.#process = spawn(process.execPath, [file, JSON.stringify(options)], {
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      this.#said.push(JSON.parse(line) as Said);
      this.#heard.resolve();
      this.#heard = nextLine();
    });
    this.#process.stderr.on('data', (bytes: Buffer) => (this.#errors += bytes.toString()));
    this.#process.stdin.on('error', () => undefined);
    this.#process.once('close', (code, signal) => {
      this.#ended.resolve();
      const how = signal ?? String(code);
      this.#heard.reject(new Error(`The application has ended (${how}): ${this.#errors}`));
    });
  }

  static async start(options: LockModuleOptions): Promise<OrdersProcess> {
    const orders = new OrdersProcess(options);
    await orders.says('open');
    return orders;
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  tell(command: string): void {
    this.#process.stdin.write(`${command}\n`);
  }

  /** Resolves with the n-th line about an event. */
  async says(event: string, n = 1): Promise<Said> {
    for (;;) {
      const said = this.#said.filter((each) => each.event === event)[n - 1];
      if (said !== undefined) return said;
      await this.#heard.promise;
    }
  }

  saidOf(event: string): readonly Said[] {
    return this.#said.filter((each) => each.event === event);
  }

  freeze(): void {
    this.#process.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#ended.promise;
  }
}
