/**
 * A process whose calls wait for several keys: `several-keys-calls.ts <redis url> <where the locks are, by store, as JSON>`.
 *
 * In Redis it takes its orders (list `orders:<pid>`, as JSON). It counts the calls that have begun to wait (`waiting:<keys>`) and adds the end
 * of each call to the list `ended:<keys>`: `granted`, or the name of its error. A granted lock is released at once. An empty order ends it.
 */
import { Cluster, Redis } from 'ioredis';
import type { Wait } from '../../../lib/options/checks.js';
import { Locks } from '../../support/locks.js';

export interface CallOrder {
  readonly store: string;
  readonly keys: readonly string[];
  readonly wait: Wait;
}

/** The URL of a server, or the ports of a Cluster, by the name of the store. */
export type Whereabouts = Readonly<Record<string, string | readonly number[]>>;

const [url = '', whereabouts = '{}'] = process.argv.slice(2);
const [orders, witness] = [new Redis(url), new Redis(url)]; // to wait for an order blocks a connection
const clusters: Cluster[] = [];

function locksAt(where: string | readonly number[]): Locks {
  if (typeof where === 'string') return new Locks({ redis: where });
  const nodes = where.map((port) => ({ host: '127.0.0.1', port }));
  const cluster = new Cluster(nodes, { lazyConnect: true });
  clusters.push(cluster);
  return new Locks({ redis: cluster });
}

const stores = new Map(
  Object.entries(JSON.parse(whereabouts) as Whereabouts).map(([store, where]) => [
    store,
    locksAt(where),
  ]),
);

async function call({ store, keys, wait }: CallOrder): Promise<void> {
  const end = await stores
    .get(store)!
    .run(keys, { wait }, () => 'granted')
    .catch((error: unknown) => (error as Error).name);
  await witness.rpush(`ended:${keys.join(' ')}`, end);
}

for (const locks of stores.values()) {
  await locks.open();
  locks.on('waiting', ({ keys }) => void witness.incr(`waiting:${keys.join(' ')}`));
}
const calls: Promise<void>[] = [];
for (;;) {
  const [, order = ''] = (await orders.blpop(`orders:${process.pid}`, 0)) ?? [];
  if (order === '') break;
  calls.push(call(JSON.parse(order) as CallOrder));
}
await Promise.all(calls);
await Promise.all([...stores.values()].map((locks) => locks.shutdown()));
for (const cluster of clusters) cluster.disconnect();
for (const redis of [orders, witness]) redis.disconnect();
