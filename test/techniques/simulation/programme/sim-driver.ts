import type { LockDriver } from '../../../../lib/index.js';
import type { RedisClient } from '../../../../lib/store/redis/client/redis-client.js';
import type { Runtime } from '../../../../lib/time/runtime.js';
import type { SimSource } from '../world/sim-client.js';

const TAKE = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return redis.call('PTTL', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 'acquired'`;

const EXTEND = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

const RELEASE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`;

/** A connection that is silent for so long is replaced. */
const SILENT_MS = 2_000;

/**
 * A driver as an application may write it, for a database with atomic steps and a clock of its own: a server of the world. Its replies are
 * late, fail or are lost as those of any server are. While it is not connected, operations wait. They are sent later, even if no call waits
 * for them any more.
 */
export class SimDriver implements LockDriver {
  readonly #client: RedisClient;
  readonly #runtime: Runtime;
  #waiting: (() => void)[] = [];

  constructor(source: SimSource) {
    const nothing = (): void => undefined;
    this.#runtime = source.process.applicationRuntime;
    this.#client = source.connect({
      ...{ onConnect: nothing, onError: nothing, onClose: nothing, onSlots: nothing },
      onEnd: () => this.#goOn(),
      onReady: () => this.#goOn(),
    });
    this.#client.connect();
  }

  async acquire(key: string, token: string, ttlMs: number): ReturnType<LockDriver['acquire']> {
    const reply = await this.#run(TAKE, key, token, ttlMs);
    return reply === 'acquired'
      ? { status: 'acquired' }
      : { status: 'held', remainingMs: Math.max(0, Number(reply)) };
  }

  async extend(key: string, token: string, ttlMs: number): ReturnType<LockDriver['extend']> {
    const reply = await this.#run(EXTEND, key, token, ttlMs);
    return { status: reply === 1 ? 'extended' : 'lost' };
  }

  async release(key: string, token: string): ReturnType<LockDriver['release']> {
    const reply = await this.#run(RELEASE, key, token);
    return { status: reply === 1 ? 'released' : 'not-held' };
  }

  /** The application closes its connection. */
  close(): void {
    this.#client.disconnect();
  }

  async #run(script: string, key: string, ...args: (string | number)[]): Promise<unknown> {
    if (this.#client.state === 'connecting')
      await this.#notSilent(new Promise<void>((resolve) => this.#waiting.push(resolve)));
    return this.#notSilent(this.#client.command('eval', script, 1, key, ...args.map(String)));
  }

  async #notSilent<Result>(result: Promise<Result>): Promise<Result> {
    const cancel = this.#runtime.setTimer(() => this.#client.reconnect?.(), SILENT_MS);
    try {
      return await result;
    } finally {
      cancel();
    }
  }

  #goOn(): void {
    for (const go of this.#waiting.splice(0)) go();
  }
}
