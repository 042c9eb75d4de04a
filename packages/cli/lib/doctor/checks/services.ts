import type { InstanceInfo } from 'nestjs-holdfast/admin';
import { LockStoreUnavailableError } from 'nestjs-holdfast/tools';
import { nobodyReports, placesOf, PREFIX_HINT } from '../../elsewhere.js';
import type { Session } from '../../session.js';
import { counted, nameOf } from '../../text/who.js';
import { untilConnected } from '../connection-end.js';
import { ok, unknown, warning, type Found } from '../finding.js';
import type { Server } from '../server.js';
import type { CommonCheck } from '../subject.js';

const MOST_NAMED = 5;

/** Who uses the locks, and whether they still report. */
export const services: CommonCheck = {
  name: 'services',
  async examine({ session, servers }) {
    const all = await untilConnected(
      () => instancesOf(session),
      (found) => (found instanceof LockStoreUnavailableError ? messagesOf(found) : []),
    );
    if (all instanceof LockStoreUnavailableError)
      return [unknown('Who uses the locks', messagesOf(all).join('; '))];
    if (all.length === 0) return nobody(servers);
    const unresponsive = all.filter(({ isUnresponsive }) => isUnresponsive);
    const text = `${counted(all.length, 'service')} described ${all.length === 1 ? 'itself' : 'themselves'} in the last hour`;
    if (unresponsive.length === 0) return [ok(`${text}, and all report.`)];
    const names = unresponsive.slice(0, MOST_NAMED).map(nameOf).join('; ');
    return [
      warning(
        `${text}, ${String(unresponsive.length)} of them unresponsive: ${names}. They are frozen, cut off or dead, or a server refuses what they write.`,
        'See "instances". What a dead one holds ends with its TTL, or by "release-instance".',
      ),
    ];
  },
};

async function instancesOf({
  admin,
}: Session): Promise<readonly InstanceInfo[] | LockStoreUnavailableError> {
  try {
    return await admin.instances();
  } catch (problem) {
    if (problem instanceof LockStoreUnavailableError) return problem;
    throw problem;
  }
}

const messagesOf = ({ nodes }: LockStoreUnavailableError): readonly string[] =>
  nodes.map(({ message }) => message);

/** A new deployment has none yet. Services in another place mean that this is the wrong one. */
async function nobody(servers: readonly Server[]): Promise<readonly Found[]> {
  const places = await allPlaces(servers);
  if (places.length > 0) return [warning(nobodyReports(places), PREFIX_HINT)];
  return [ok('No service has described itself in the last hour.')];
}

async function allPlaces(servers: readonly Server[]): Promise<readonly string[]> {
  const found = await Promise.all(servers.map(placesOf));
  return [...new Set(found.flat())];
}
