import { error, type Finding } from './doctor/finding.js';
import { fieldIn, Server, type Answer } from './doctor/server.js';
import { masterRemedy } from './place-options.js';
import type { Runtime } from './runtime.js';
import type { Target } from './target.js';

export interface Reached {
  readonly servers: readonly Server[];
  /** Why there is none. */
  readonly away: readonly Finding[];
}

/** Connects to the servers of a target, and closes the connections when the work is over. */
export const withServers = <T>(
  { redis }: Pick<Target, 'redis'>,
  runtime: Runtime,
  work: (reached: Reached) => Promise<T>,
): Promise<T> =>
  redis.connected(({ servers, away }) =>
    work({
      servers: servers.map((server) => new Server(server, runtime)),
      away: away.map(({ node, message }) => ({
        check: 'connection',
        server: node,
        ...error(
          `It cannot be used: ${message.replace(/\.$/, '')}.`,
          'Check address, password, database and network. No lock is granted there.',
        ),
      })),
    }),
  );

/** The master of a replica; `undefined` for a master, and where INFO is forbidden. */
export const masterOf = async (server: Server): Promise<string | undefined> =>
  masterIn(await server.info('replication'));

/** In the replication section of INFO, as a URL has it. */
export function masterIn(info: Answer): string | undefined {
  if (fieldIn(info, 'role') !== 'slave') return undefined;
  const host = fieldIn(info, 'master_host') ?? '?';
  const name = host.includes(':') ? `[${host}]` : host;
  return `${name}:${fieldIn(info, 'master_port') ?? '?'}`;
}

/** Whether it is a node of a Cluster, and was given as one Redis. */
export const isBareNode = async (server: Server): Promise<boolean> =>
  !server.isClusterNode && fieldIn(await server.info('cluster'), 'cluster_enabled') === '1';

/** Why a server has no complete view of the locks, and what to do; `undefined` if it has one, as far as is known. */
export async function wrongServerText(server: Server, target: Target): Promise<string | undefined> {
  const master = await masterOf(server);
  if (master !== undefined)
    return `${server.name} is a replica of ${master}: it may lack locks, and holders do not get its messages. ${masterRemedy(target, server.name, master)}`;
  return (await isBareNode(server))
    ? `${server.name} is a node of a Cluster, and has only a part of the keys. Give --cluster.`
    : undefined;
}
