import type { LockStore } from '../../lib/store/lock-store.js';
import { redisLockStore } from '../../lib/store/redis/redis-lock-store.js';
import type { Script } from '../../lib/store/redis/scripts/script.js';
import { FakeRedis } from '../support/fake-redis.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

export const NODE_TIMEOUT_MS = 1_000;

/** A Redis store over three servers whose answers the test gives, in virtual time. */
export class VirtualQuorum {
  readonly runtime = new VirtualRuntime();
  readonly nodes = ['a:6379', 'b:6379', 'c:6379'].map((name) => new FakeRedis(this.runtime, name));
  readonly store: LockStore;

  constructor() {
    const unused = [...this.nodes];
    this.store = redisLockStore({
      redis: this.nodes.map(({ name }) => `redis://${name}`),
      keyPrefix: 'lock:',
      nodeTimeoutMs: NODE_TIMEOUT_MS,
      fenceKeepMs: 600_000,
      warn: () => undefined,
      runtime: this.runtime,
      sourceOf: () => unused.shift()!,
    });
  }

  async open(): Promise<void> {
    await this.during(this.store.open(), 100);
    for (const { received } of this.nodes) received.length = 0;
  }

  async close(): Promise<void> {
    await this.during(this.store.close(), 2_000);
  }

  /** What comes of it within so much time. */
  async during<T>(outcome: Promise<T>, ms: number): Promise<T> {
    await this.runtime.advance(ms);
    const late = Promise.resolve('nothing yet');
    return (await Promise.race([outcome, late])) as T;
  }

  /** The arguments of each call of a script, behind its keys, at one node. */
  callsAt(node: number, { sha }: Script): readonly (readonly (string | number)[])[] {
    const calls = this.nodes[node]!.received.filter(([, script]) => script === sha);
    return calls.map(([, , count, ...rest]) => rest.slice(Number(count)));
  }

  /** How often a script was called at each of the nodes. */
  countsOf(script: Script): readonly number[] {
    return this.nodes.map((_, node) => this.callsAt(node, script).length);
  }
}
