import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from './eventually.js';
import { RedisServer } from './redis-server.js';

const SLOTS = 16_384;
const FORMED_WITHIN_MS = 30_000;
const MIGRATED_WITHIN_MS = 5_000;

/** How large a cluster to start. */
export interface RedisClusterOptions {
  /** Default: 3. */
  readonly masters?: number;
  /** In all, shared out over the masters in turn. Default: 0. */
  readonly replicas?: number;
}

/** A real Redis Cluster of server processes on loopback ports. */
export class RedisCluster {
  /** The nodes that started as masters, then the replicas. */
  readonly nodes: readonly RedisServer[];

  private constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes;
  }

  /** Starts the nodes, joins them, shares out the slots and resolves once every node finds the cluster in order. */
  static async start({
    masters = 3,
    replicas = 0,
  }: RedisClusterOptions = {}): Promise<RedisCluster> {
    const started = await Promise.allSettled(Array.from({ length: masters + replicas }, startNode));
    const nodes = started.flatMap((result) =>
      result.status === 'fulfilled' ? [result.value] : [],
    );
    try {
      for (const result of started) if (result.status === 'rejected') throw result.reason;
      await joinNodes(nodes);
      await shareOutSlots(nodes.slice(0, masters));
      await everyNode(nodes, knowsAll(nodes.length));
      await attachReplicas(nodes.slice(0, masters), nodes.slice(masters));
      await everyNode(nodes, isInOrder);
    } catch (error) {
      await Promise.all(nodes.map((node) => node.stop()));
      throw error;
    }
    return new RedisCluster(nodes);
  }

  /** What `new Cluster(…)` of ioredis takes. */
  get startupNodes(): { host: string; port: number }[] {
    return this.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  }

  /** The node that serves `key` now, as the first living node sees it. */
  async masterOf(key: string): Promise<RedisServer> {
    const witness = this.nodes.find((node) => node.isRunning);
    if (!witness) throw new Error('No node of the cluster is running.');
    const slot = Number(await witness.command('CLUSTER', 'KEYSLOT', key));
    const port = await masterPortAt(witness, slot);
    const master = this.nodes.find((node) => node.port === port);
    if (!master) throw new Error(`No node of the cluster serves slot ${slot} of the key "${key}".`);
    return master;
  }

  /** Kills the master of a key. Resolves when a replica serves it, and the old master is a replica with all data. */
  async failOver(key: string): Promise<void> {
    const old = await this.masterOf(key);
    await old.kill();
    await eventually(
      async () => {
        if ((await this.masterOf(key)) === old) throw new Error(`No replica serves "${key}".`);
      },
      { withinMs: FORMED_WITHIN_MS },
    );
    await old.restart();
    await old.hasSynced(FORMED_WITHIN_MS);
  }

  /**
   * Moves the slot of a key to the next master, as `redis-cli --cluster reshard` does it: key by key, with a pause before each and after
   * the last one. Meanwhile both masters redirect or refuse. Resolves when every node knows the new master.
   *
   * @param whenEmpty is called when all keys have moved, and the old master still has the slot
   */
  async moveSlot(key: string, pauseMs = 0, whenEmpty?: () => Promise<unknown>): Promise<void> {
    const [from, masters] = [await this.masterOf(key), await this.#masters()];
    const to = masters[(masters.indexOf(from) + 1) % masters.length]!;
    const slot = Number(await from.command('CLUSTER', 'KEYSLOT', key));
    const [fromId, toId] = [String(await idOf(from)), String(await idOf(to))];
    await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId);
    await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId);
    for (;;) {
      await sleep(pauseMs);
      const [next] = (await from.command('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[];
      if (next === undefined) break;
      await from.command('MIGRATE', '127.0.0.1', to.port, next, 0, MIGRATED_WITHIN_MS);
    }
    await whenEmpty?.();
    for (const node of new Set([to, from, ...masters]))
      await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', toId);
    await everyNode(this.nodes, async (node) => (await masterPortAt(node, slot)) === to.port);
  }

  /** Stops all nodes. */
  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  /** As they are now. */
  async #masters(): Promise<readonly RedisServer[]> {
    const roles = await Promise.all(this.nodes.map((node) => node.command('ROLE')));
    return this.nodes.filter((_, index) => (roles[index] as [string])[0] === 'master');
  }
}

const idOf = (node: RedisServer): Promise<unknown> => node.command('CLUSTER', 'MYID');

async function masterPortAt(node: RedisServer, slot: number): Promise<number | undefined> {
  const ranges = (await node.command('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
  return ranges.find(([first, last]) => first <= slot && slot <= last)?.[2][1];
}

function startNode(): Promise<RedisServer> {
  return RedisServer.start({
    config: {
      'cluster-enabled': 'yes',
      'cluster-config-file': 'nodes.conf',
      'cluster-node-timeout': '2000',
      'cluster-replica-validity-factor': '0', // a replica takes over however old its data are
    },
  });
}

async function joinNodes(nodes: readonly RedisServer[]): Promise<void> {
  for (const [index, node] of nodes.entries()) {
    // Distinct epochs from the start save the nodes the settling of collisions.
    await node.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
    if (index > 0) await node.command('CLUSTER', 'MEET', '127.0.0.1', String(nodes[0]?.port));
  }
}

async function shareOutSlots(masters: readonly RedisServer[]): Promise<void> {
  const firstSlotOf = (index: number): number => Math.floor((index * SLOTS) / masters.length);
  await Promise.all(
    masters.map((node, index) => {
      const first = firstSlotOf(index);
      // ADDSLOTSRANGE would be shorter, but Redis 6 has none.
      const slots = Array.from(
        { length: firstSlotOf(index + 1) - first },
        (_, offset) => first + offset,
      );
      return node.command('CLUSTER', 'ADDSLOTS', ...slots);
    }),
  );
}

async function attachReplicas(
  masters: readonly RedisServer[],
  replicas: readonly RedisServer[],
): Promise<void> {
  for (const [index, replica] of replicas.entries()) {
    const masterId = String(await masters[index % masters.length]?.command('CLUSTER', 'MYID'));
    await replica.command('CLUSTER', 'REPLICATE', masterId);
    await replica.hasSynced(FORMED_WITHIN_MS);
  }
}

async function everyNode(
  nodes: readonly RedisServer[],
  condition: (node: RedisServer) => Promise<boolean>,
): Promise<void> {
  const withinMs = FORMED_WITHIN_MS;
  await Promise.all(nodes.map((node) => eventually(() => condition(node), { withinMs })));
}

function knowsAll(count: number): (node: RedisServer) => Promise<boolean> {
  return async (node) => {
    const lines = String(await node.command('CLUSTER', 'NODES'))
      .trim()
      .split('\n');
    return lines.length === count && !lines.some((line) => line.includes('handshake'));
  };
}

async function isInOrder(node: RedisServer): Promise<boolean> {
  return String(await node.command('CLUSTER', 'INFO')).includes('cluster_state:ok');
}
