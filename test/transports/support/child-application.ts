import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { compiledFile } from '../../support/compiled.js';
import { eventually } from '../../support/eventually.js';

/** What a test may ask of an application in another process (`serve.ts`). */
export type Order =
  'hold' | 'release' | 'is-held' | 'lose' | 'fail' | 'recover' | 'notes' | 'close';

interface Started {
  readonly url: string;
}

interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** A Nest application in a process of its own: drivers load what jest cannot. */
export class ChildApplication {
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #printed: string[];
  #asked = 0;

  private constructor(child: ChildProcess, printed: string[], { url }: Started) {
    this.#process = child;
    this.#printed = printed;
    this.url = url;
  }

  static async start(script: URL, args: readonly string[] = []): Promise<ChildApplication> {
    const child = fork(compiledFile(script), args, {
      env: { ...process.env, NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const printed: string[] = [];
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (bytes: Buffer) => printed.push(bytes.toString()));
    const ended = once(child, 'exit').then(() => {
      throw new Error(`The application ended before it listened: ${printed.join('')}`);
    });
    const [started] = (await Promise.race([once(child, 'message'), ended])) as [Started];
    ended.catch(() => undefined);
    return new ChildApplication(child, printed, started);
  }

  /** All that it has printed. */
  get log(): string {
    return this.#printed.join('');
  }

  async ask(order: Order, key = ''): Promise<unknown> {
    const id = ++this.#asked;
    const answered = new Promise<Reply>((resolve) => {
      const onMessage = (reply: Reply): void => {
        if (reply.id !== id) return;
        this.#process.off('message', onMessage);
        resolve(reply);
      };
      this.#process.on('message', onMessage);
    });
    this.#process.send({ id, order, key });
    const { value, error } = await answered;
    if (error !== undefined) throw new Error(error);
    return value;
  }

  /** While the store does not answer. */
  async duringOutage<T>(work: () => Promise<T>): Promise<T> {
    await this.ask('fail');
    const result = await work();
    await this.ask('recover');
    return result;
  }

  /** Loses the lock of a key when the call holds it, which ends it (`untilLost`). */
  async losing<T>(key: string, call: () => Promise<T>): Promise<T> {
    const called = call();
    await eventually(() => this.ask('is-held', key) as Promise<boolean>);
    await this.ask('lose', key);
    return called;
  }

  /** Resolves when the process has ended by itself. */
  async close(): Promise<void> {
    const ended = once(this.#process, 'exit');
    await this.ask('close');
    await ended;
  }
}
