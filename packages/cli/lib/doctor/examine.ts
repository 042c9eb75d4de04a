import type { Runtime } from '../runtime.js';
import { masterOf, withServers } from '../servers.js';
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
import type { Finding } from './finding.js';
import type { Server } from './server.js';
import type { CommonCheck, ServerCheck, Subject } from './subject.js';

const EACH_SERVER: readonly ServerCheck[] = [
  ...[version, role, database, rights, eviction, persistence, restartGuard, roundTrip],
  ...[pubSub, keys],
];

const ALL_SERVERS: readonly CommonCheck[] = [masters, clocks, services, grants];

/** What was found, in the order of the servers. */
export interface Examination {
  readonly findings: readonly Finding[];
  /** How many servers answered. */
  readonly reachable: number;
}

/** Examines everything. Never rejects for a fault of a server. */
export const examine = (target: Target, session: Session, runtime: Runtime): Promise<Examination> =>
  withServers(target, runtime, async ({ servers, away }) => {
    if (servers.length === 0) return { findings: away, reachable: 0 };
    const { places } = target.redis;
    const findings: Finding[] = [...away];
    const masters: Server[] = [];
    const subjectOf = (examined: readonly Server[]): Subject => ({
      kind: kindOf(places),
      nodes: places.length,
      ...{ servers: examined, target, session, runtime },
    });
    for (const server of servers) {
      const isMaster = (await masterOf(server)) === undefined;
      if (isMaster) masters.push(server);
      // A replica refuses every write, so nothing else can be found out.
      const checks = isMaster ? EACH_SERVER : [version, role];
      findings.push(...(await examineServer(server, checks, subjectOf(servers))));
    }
    if (masters.length === servers.length)
      for (const { name: check, examine: look } of ALL_SERVERS)
        for (const found of await look(subjectOf(masters))) findings.push({ check, ...found });
    return { findings, reachable: servers.length };
  });

function kindOf([first, second]: Target['redis']['places']): Subject['kind'] {
  if (second !== undefined) return 'several masters';
  return first?.isCluster === true ? 'a Cluster' : 'one Redis';
}

async function examineServer(
  server: Server,
  checks: readonly ServerCheck[],
  subject: Subject,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const { name: check, examine: look } of checks)
    for (const found of await look(server, subject))
      findings.push({ check, server: server.name, ...found });
  return findings;
}
