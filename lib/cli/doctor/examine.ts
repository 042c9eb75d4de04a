import { RedisConnection } from '../../store/redis/client/redis-connection.js';
import type { RedisSource } from '../../store/redis/client/redis-client.js';
import type { Runtime } from '../../time/runtime.js';
import { Scheduler } from '../../time/scheduler.js';
import type { Session } from '../session.js';
import type { Target } from '../target.js';
import { clocks } from './checks/clocks.js';
import { database } from './checks/database.js';
import { eviction } from './checks/eviction.js';
import { grants } from './checks/grants.js';
import { keys } from './checks/keys.js';
import { masters } from './checks/masters.js';
import { persistence } from './checks/persistence.js';
import { pubSub } from './checks/pub-sub.js';
import { restartGuard } from './checks/restart-guard.js';
import { rights } from './checks/rights.js';
import { role } from './checks/role.js';
import { roundTrip } from './checks/round-trip.js';
import { services } from './checks/services.js';
import { version } from './checks/version.js';
import { error, type Finding } from './finding.js';
import { Server } from './server.js';
import type { CommonCheck, ServerCheck, Subject } from './subject.js';

const EACH_SERVER: readonly ServerCheck[] = [
  ...[version, role, database, rights, eviction, persistence, restartGuard, roundTrip],
  ...[pubSub, keys],
];

const ALL_SERVERS: readonly CommonCheck[] = [masters, clocks, services, grants];

/** A server that is slow is to be examined, too. */
const LIMIT_MS = 3_000;

/** What was found, in the order of the servers. */
export interface Examination {
  readonly findings: readonly Finding[];
  /** How many servers answered. */
  readonly reachable: number;
}

/** Examines everything. Never rejects for a fault of a server. */
export async function examine(
  { sources, keyPrefix }: Target,
  session: Session,
  runtime: Runtime,
): Promise<Examination> {
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
    const servers = reached.flatMap((each) => each.servers);
    const away = reached.flatMap((each) => each.away);
    if (servers.length === 0) return { findings: away, reachable: 0 };
    const subject: Subject = {
      kind: kindOf(sources),
      nodes: sources.length,
      ...{ servers, session, runtime },
    };
    const ofServers: Finding[] = [];
    for (const server of servers) ofServers.push(...(await examineServer(server, subject)));
    const common: Finding[] = [];
    for (const { name: check, examine: look } of ALL_SERVERS)
      for (const found of await look(subject)) common.push({ check, ...found });
    return { findings: [...away, ...ofServers, ...common], reachable: servers.length };
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

function kindOf([first, second]: readonly RedisSource[]): Subject['kind'] {
  if (second !== undefined) return 'several masters';
  return first?.isCluster === true ? 'a Cluster' : 'one Redis';
}

interface Reached {
  readonly servers: readonly Server[];
  /** Why there is none. */
  readonly away: readonly Finding[];
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

async function examineServer(server: Server, subject: Subject): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const { name: check, examine: look } of EACH_SERVER)
    for (const found of await look(server, subject))
      findings.push({ check, server: server.name, ...found });
  return findings;
}
