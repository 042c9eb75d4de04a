import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { compiledFile } from '../../../support/compiled.js';
import { eventually } from '../../../support/eventually.js';
import { RedisServer } from '../../../support/redis-server.js';

/** What a test may ask of an application in another process (`serve.ts`). */
export type Order = 'hold' | 'release' | 'replace' | 'is-held' | 'notes' | 'close';

interface Started {
  readonly url: string;
}

interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** For the hook that starts one: it reads a thousand files, possibly on a busy machine. */
export const START_LIMIT_MS = 120_000;

/** A Nest application in a process of its own, with a Redis of its own: drivers load what jest cannot. */
export class ChildApplication {
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #redis: RedisServer;
  readonly #printed: string[];
  #asked = 0;

  private constructor(
    child: ChildProcess,
    redis: RedisServer,
    printed: string[],
    { url }: Started,
  ) {
    this.#process = child;
    this.#redis = redis;
    this.#printed = printed;
    this.url = url;
  }

  static async start(script: URL, args: readonly string[] = []): Promise<ChildApplication> {
    const redis = await RedisServer.start();
    const child = fork(compiledFile(script), args, {
      env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: redis.url },
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
    return new ChildApplication(child, redis, printed, started);
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

  /** Redis replies to nothing until `recover()`. */
  fail(): void {
    this.#redis.freeze();
  }

  recover(): void {
    this.#redis.thaw();
  }

  /** While the store does not reply. */
  async duringOutage<T>(work: () => Promise<T>): Promise<T> {
    this.fail();
    const result = await work();
    this.recover();
    return result;
  }

  /** Somebody else takes a held key. The next renewal finds that out. */
  async lose(key: string): Promise<void> {
    await this.#redis.command('SET', `lock:${key}`, 'somebody else');
  }

  /** Loses the lock of a key when the call holds it, which ends it (`untilLost`). The other owner is done when the call is. */
  async losing<T>(key: string, call: () => Promise<T>): Promise<T> {
    const called = call();
    await eventually(() => this.ask('is-held', key) as Promise<boolean>);
    await this.lose(key);
    const result = await called;
    await this.#redis.command('DEL', `lock:${key}`);
    return result;
  }

  /** Replaces the call when it holds the lock of a key. */
  async replacing<T>(key: string, call: () => Promise<T>): Promise<T> {
    const called = call();
    await eventually(() => this.ask('is-held', key) as Promise<boolean>);
    await this.ask('replace', key);
    return called;
  }

  /** Resolves when the process has ended by itself. */
  async close(): Promise<void> {
    const ended = once(this.#process, 'exit');
    await this.ask('close');
    await ended;
    await this.#redis.stop();
  }
}
