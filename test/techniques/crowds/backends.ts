/** The stores of the test, and where a client process finds them. */
import { startServers, stopAll } from '../conformance/backends.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { RedisSentinel } from '../../support/redis-sentinel.js';
import type { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import type { StoreKind } from './plan.js';

/** Callers meet a slot of which some keys have moved. */
const SLOT_PAUSE_MS = 60;

/** How a process gets to the store. */
export interface StoreAddress {
  readonly kind: 'memory' | 'redis' | 'cluster';
  readonly ports: readonly number[];
  /** Of servers that Sentinel watches. */
  readonly group?: SentinelGroup;
}

interface SentinelGroup {
  readonly name: string;
  readonly sentinels: readonly { readonly host: string; readonly port: number }[];
}

export interface EngineBackend {
  readonly kind: StoreKind;
  readonly address: StoreAddress;
  readonly servers: readonly RedisServer[];
  /** Those that have the data of a key. */
  serversOf(key: string): Promise<readonly RedisServer[]>;
  /** The master of a key dies. Resolves when a replica has taken its place, and it is one itself. */
  failOver?(key: string): Promise<void>;
  /** Resolves when another master of the Cluster serves the key. */
  moveSlot?(key: string): Promise<void>;
  close(): Promise<void>;
}

export async function openBackend(kind: StoreKind): Promise<EngineBackend> {
  switch (kind) {
    case 'memory':
      return independent(kind, { kind: 'memory', ports: [] }, []);
    case 'one-redis':
    case 'three-masters': {
      const servers = await startServers(kind === 'one-redis' ? 1 : 3);
      return independent(kind, { kind: 'redis', ports: servers.map(({ port }) => port) }, servers);
    }
    case 'slow-redis':
      return behindNetwork(kind);
    case 'cluster':
      return clustered(kind, await RedisCluster.start());
    case 'cluster-fail-over':
      return withReplicas(kind);
    case 'sentinel':
      return watched(kind);
  }
}

const independent = (
  kind: StoreKind,
  address: StoreAddress,
  servers: readonly RedisServer[],
): EngineBackend => ({
  ...{ kind, address, servers },
  serversOf: () => Promise.resolve(servers),
  close: () => stopAll(servers),
});

async function behindNetwork(kind: StoreKind): Promise<EngineBackend> {
  const servers = await startServers(1);
  const proxy = await TcpProxy.start(servers[0]!.port);
  proxy.delay(1, 'to-server');
  const backend = independent(kind, { kind: 'redis', ports: [proxy.port] }, servers);
  return {
    ...backend,
    close: async () => {
      await proxy.stop();
      await backend.close();
    },
  };
}

function clustered(kind: StoreKind, cluster: RedisCluster): EngineBackend {
  return {
    kind,
    address: { kind: 'cluster', ports: cluster.startupNodes.map(({ port }) => port) },
    servers: cluster.nodes,
    serversOf: async (key) => [await cluster.masterOf(`lock:${key}`)],
    moveSlot: (key) => cluster.moveSlot(`lock:${key}`, SLOT_PAUSE_MS),
    close: () => cluster.stop(),
  };
}

async function withReplicas(kind: StoreKind): Promise<EngineBackend> {
  const cluster = await RedisCluster.start({ replicas: 3 });
  return { ...clustered(kind, cluster), failOver: (key) => cluster.failOver(`lock:${key}`) };
}

async function watched(kind: StoreKind): Promise<EngineBackend> {
  const group = await RedisSentinel.start();
  const { name, sentinels, master, replica } = group;
  const servers = [master, replica];
  const ports = servers.map(({ port }) => port);
  return {
    ...{ kind, servers, address: { kind: 'redis', ports, group: { name, sentinels } } },
    serversOf: () => Promise.resolve([group.master]),
    failOver: async () => {
      await group.failOver();
      await group.rejoin();
      await group.isComplete();
    },
    close: () => group.stop(),
  };
}
