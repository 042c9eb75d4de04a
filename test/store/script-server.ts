import { Redis } from 'ioredis';
import type { Script, ScriptCall } from '../../lib/store/redis/scripts/script.js';
import { RedisServer } from '../support/redis-server.js';

/** A server of its own for the tests of scripts, which run as they are, without a store. */
export class ScriptServer {
  readonly redis: Redis;
  readonly #server: RedisServer;

  private constructor(server: RedisServer) {
    this.#server = server;
    this.redis = new Redis(server.url);
  }

  static async start(): Promise<ScriptServer> {
    return new ScriptServer(await RedisServer.start());
  }

  run({ lua }: Script, call: ScriptCall): Promise<unknown> {
    return this.redis.eval(lua, ...call);
  }

  /** What its clock shows, in µs. */
  async nowUs(): Promise<number> {
    const [seconds = 0, micros = 0] = (await this.redis.time()).map(Number);
    return seconds * 1_000_000 + micros;
  }

  async stop(): Promise<void> {
    this.redis.disconnect();
    await this.#server.stop();
  }
}
