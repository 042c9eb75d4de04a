import { Cluster, Redis } from 'ioredis';
import { LockService, type AcquireOptions, type LockModuleOptions } from 'nestjs-holdfast';
import { MemoryLockStore } from '../../../lib/store/memory/memory-lock-store.js';
import { FENCE } from '../../techniques/conformance/services.js';
import { storedKeys } from '../../techniques/conformance/stored-keys.js';
import { ChildScript } from '../../support/child-script.js';
import { eventually } from '../../support/eventually.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { RedisServer } from '../../support/redis-server.js';
import type { CallOrder, Whereabouts } from './several-keys-calls.js';
import { storeOption } from '../../../lib/options/location.js';

const CALLS = new URL('./several-keys-calls.ts', import.meta.url);

/** So long that nobody waits for the end of a lease. */
const TTL_MS = 60_000;

export const SERVED = ['one Redis', 'a Cluster'] as const;

export const STORES = ['the store in memory', ...SERVED] as const;

export type StoreName = (typeof STORES)[number];

/** Keys are taken in the order of their names, or in another one: both have to be tried. */
export const ORDERS = ['hot key first', 'hot key last'] as const;

export type Order = (typeof ORDERS)[number];

/** Where the tests of several keys lock: a server, a Cluster, the memory, and other processes. */
export class SeveralKeysStage {
  readonly server: RedisServer;
  readonly witness: Redis;
  readonly #cluster: RedisCluster;
  readonly #client: Cluster;
  readonly #memory = new MemoryLockStore();
  readonly #services: LockService[] = [];
  readonly #processes: CallingProcess[] = [];
  #names = 0;

  private constructor(server: RedisServer, cluster: RedisCluster) {
    this.server = server;
    this.witness = new Redis(server.url);
    this.#cluster = cluster;
    this.#client = new Cluster(cluster.startupNodes, { lazyConnect: true });
  }

  static async open(): Promise<SeveralKeysStage> {
    const [server, cluster] = await Promise.all([RedisServer.start(), RedisCluster.start()]);
    return new SeveralKeysStage(server, cluster);
  }

  async close(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.kill()));
    await Promise.all(this.#services.map((service) => service.shutdown(0)));
    this.witness.disconnect();
    this.#client.disconnect();
    await Promise.all([this.server.stop(), this.#cluster.stop()]);
  }

  /** Is shut down at the end. */
  async newService(
    store: StoreName,
    options: Partial<LockModuleOptions> = {},
  ): Promise<LockService> {
    const service = new LockService({ ttl: TTL_MS, ...options, ...this.#optionsFor(store) });
    this.#services.push(service);
    await service.open();
    return service;
  }

  /** Takes a key, and never releases it. */
  async takeFor(store: StoreName, key: string, ttlMs: number): Promise<void> {
    const token = 'of other software';
    if (store === 'the store in memory') await this.#memory.acquire({ keys: [key], token, ttlMs });
    else {
      const redis = store === 'one Redis' ? this.witness : this.#client;
      await redis.set(`lock:${key}`, token, 'PX', ttlMs);
    }
  }

  newProcess(): CallingProcess {
    const whereabouts: Whereabouts = {
      'one Redis': this.server.url,
      'a Cluster': this.#cluster.nodes.map(({ port }) => port),
    };
    const child = new ChildScript(CALLS, [this.server.url, JSON.stringify(whereabouts)]);
    const process = new CallingProcess(child, this.witness);
    this.#processes.push(process);
    return process;
  }

  /** Names that no other test uses: one key that many want, and others. */
  newKeys(order: Order, colds: number): Keys {
    this.#names += 1;
    const name = `case${String(this.#names)}`;
    return {
      name,
      hot: `${name}:${order === 'hot key first' ? 'a' : 'z'}`,
      colds: Array.from({ length: colds }, (_, index) => `${name}:b${String(index)}`),
    };
  }

  /** How many callers stand in the line of a key on one Redis. */
  async placesAt(key: string): Promise<number> {
    return Number(await this.server.command('ZCARD', `{lock:${key}}:queue`));
  }

  /** What the store knows of the keys of a case, without the fences. */
  async leftOf(store: StoreName, { name }: Keys): Promise<readonly string[]> {
    if (store === 'the store in memory') return [];
    const servers = store === 'one Redis' ? [this.server] : this.#cluster.nodes;
    const stored = await storedKeys(servers);
    return stored
      .map((key) => key.name)
      .filter((stored) => stored.includes(`${name}:`) && !FENCE.test(stored));
  }

  #optionsFor(store: StoreName): LockModuleOptions {
    if (store === 'the store in memory') return { store: storeOption(this.#memory) };
    return { redis: store === 'one Redis' ? this.server.url : this.#client };
  }
}

export interface Keys {
  readonly name: string;
  readonly hot: string;
  readonly colds: readonly string[];
}

/** A process of its own, whose calls wait for several keys. */
export class CallingProcess {
  readonly #child: ChildScript;
  readonly #witness: Redis;

  constructor(child: ChildScript, witness: Redis) {
    this.#child = child;
    this.#witness = witness;
  }

  /** Resolves when the call waits. */
  async call(
    store: StoreName,
    keys: readonly string[],
    wait: AcquireOptions['wait'] = '1m',
  ): Promise<void> {
    const order: CallOrder = { store, keys: [...keys].sort(), wait };
    const waiting = `waiting:${order.keys.join(' ')}`;
    const before = Number(await this.#witness.get(waiting));
    await this.#witness.rpush(`orders:${String(this.#child.pid)}`, JSON.stringify(order));
    await eventually(async () => Number(await this.#witness.get(waiting)) > before, {
      withinMs: 20_000,
    });
  }

  /** The ends of the calls for these keys: `granted`, or the name of an error. */
  ends(keys: readonly string[]): Promise<readonly string[]> {
    return this.#witness.lrange(`ended:${[...keys].sort().join(' ')}`, '0', '-1');
  }

  freeze(): void {
    process.kill(this.#child.pid, 'SIGSTOP');
  }

  thaw(): void {
    process.kill(this.#child.pid, 'SIGCONT');
  }

  async kill(): Promise<void> {
    this.thaw();
    await this.#child.kill();
  }
}
