import type { InstanceInfo } from 'nestjs-holdfast/admin';
import { LockStoreUnavailableError } from 'nestjs-holdfast/tools';
import { elsewhere, placesElsewhere } from '../../elsewhere.js';
import type { Session } from '../../session.js';
import { counted, nameOf } from '../../text/who.js';
import { untilConnected } from '../connection-end.js';
import { ok, unknown, warning, type Found } from '../finding.js';
import type { Server } from '../server.js';
import type { CommonCheck } from '../subject.js';
import type { Target } from '../../target.js';

const MOST_NAMED = 5;

/** Who uses the locks, and whether they still report. */
export const services: CommonCheck = {
  name: 'services',
  async examine({ target, session, servers }) {
    const all = await untilConnected(
      () => instancesOf(session),
      (found) => (found instanceof LockStoreUnavailableError ? messagesOf(found) : []),
    );
    if (all instanceof LockStoreUnavailableError)
      return [unknown('Who uses the locks', messagesOf(all).join('; '))];
    if (all.length === 0) return nobody(target, session, servers);
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
async function nobody(
  target: Target,
  session: Session,
  servers: readonly Server[],
): Promise<readonly Found[]> {
  const places = await placesElsewhere(servers);
  const keys = (await mayHaveKeys(session)) ? 'keys' : 'no keys';
  const { text, remedy } = elsewhere(target, servers, places, keys);
  if (remedy !== undefined) return [warning(text, remedy)];
  return [ok('No service has described itself in the last hour.')];
}

/** Where they cannot be listed, there may be some. */
async function mayHaveKeys({ admin }: Session): Promise<boolean> {
  try {
    const { done = false } = await admin.list({ limit: 1 }).next();
    return !done;
  } catch (problem) {
    if (problem instanceof LockStoreUnavailableError) return true;
    throw problem;
  }
}
