import { RedisConnection } from '../store/redis/client/redis-connection.js';
import type { RedisSource } from '../store/redis/client/redis-client.js';
import type { Runtime } from '../time/runtime.js';
import { Scheduler } from '../time/scheduler.js';
import { error, type Finding } from './doctor/finding.js';
import { fieldIn, Server } from './doctor/server.js';
import type { Target } from './target.js';

/** A server that is slow is to be examined, too. */
const LIMIT_MS = 3_000;

export interface Reached {
  readonly servers: readonly Server[];
  /** Why there is none. */
  readonly away: readonly Finding[];
}

/** Connects to the servers of a target, and closes the connections when the work is over. */
export async function withServers<T>(
  { sources, keyPrefix }: Pick<Target, 'sources' | 'keyPrefix'>,
  runtime: Runtime,
  work: (reached: Reached) => Promise<T>,
): Promise<T> {
  const scheduler = new Scheduler(runtime);
  const connections = sources.map((source) => connect(source, scheduler));
  try {
    const reached = await Promise.all(
      sources.map(async (source, index) => {
        const connection = connections[index];
        if (connection === undefined) return { servers: [], away: [] };
        return reach(connection, source, { prefix: source.keyPrefix + keyPrefix, runtime });
      }),
    );
    return await work({
      servers: reached.flatMap((each) => each.servers),
      away: reached.flatMap((each) => each.away),
    });
  } finally {
    for (const connection of connections) connection.close();
    scheduler.clear();
  }
}

function connect(source: RedisSource, scheduler: Scheduler): RedisConnection {
  const ignore = (): void => undefined;
  return new RedisConnection(source, {
    scheduler,
    readsRun: false,
    onLost: ignore,
    onThere: ignore,
    onRefused: ignore,
    onSlots: ignore,
  });
}

/** The server at an address, or the masters of the Cluster there. */
async function reach(
  connection: RedisConnection,
  { name, database: number }: RedisSource,
  facts: { readonly prefix: string; readonly runtime: Runtime },
): Promise<Reached> {
  const there = await connection.look(LIMIT_MS, () => Promise.resolve());
  if (there.status === 'unavailable') {
    const message = there.nodes[0]?.message ?? 'no answer';
    const found = error(
      `It cannot be used: ${message.replace(/\.$/, '')}.`,
      'Check address, password, database and network. No lock is granted there.',
    );
    return { servers: [], away: [{ check: 'connection', server: name, ...found }] };
  }
  const { client } = connection;
  const common = { ...facts, database: number, connection, timeLimitMs: LIMIT_MS };
  const one = { name, command: client.command.bind(client) };
  const masters =
    client.kind === 'single'
      ? [one]
      : client
          .masters()
          .map((master) => ({ name: master.address, command: master.command.bind(master) }));
  return { servers: masters.map((each) => new Server({ ...common, ...each })), away: [] };
}

/** The master of a replica; `undefined` for a master, and where INFO is forbidden. */
export async function masterOf(server: Server): Promise<string | undefined> {
  const info = await server.info('replication');
  if (fieldIn(info, 'role') !== 'slave') return undefined;
  return `${fieldIn(info, 'master_host') ?? '?'}:${fieldIn(info, 'master_port') ?? '?'}`;
}

/** Whether it is a node of a Cluster, and was given as one Redis. */
export const isBareNode = async (server: Server): Promise<boolean> =>
  !server.isClusterNode && fieldIn(await server.info('cluster'), 'cluster_enabled') === '1';

/** Why a server has no complete view of the locks, and what to do; `undefined` if it has one, as far as is known. */
export async function wrongServerText(server: Server): Promise<string | undefined> {
  const master = await masterOf(server);
  if (master !== undefined)
    return `${server.name} is a replica of ${master}: it may lack locks, and holders do not get its messages. Give the address of the master.`;
  return (await isBareNode(server))
    ? `${server.name} is a node of a Cluster, and has only a part of the keys. Give --cluster.`
    : undefined;
}
