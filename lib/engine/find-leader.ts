import type { LeaderInfo } from '../leader/lead.js';
import { leaseIdOf, makerIn } from '../store/owner-token.js';
import { known, type Components } from './compose.js';

/** Finds the holder of the lock of a leader, from the records of instances and the leader's own reply. */
export async function findLeader(
  key: string,
  { store, presence }: Pick<Components, 'store' | 'presence'>,
): Promise<LeaderInfo | null> {
  const { admin } = store;
  const [found] = await admin.look([key]);
  const holder = found?.holders[0];
  if (holder === undefined) return null;
  const { token, remainingMs, sinceMs } = holder;
  const id = makerIn(token);
  const instance =
    id === undefined ? undefined : (await admin.instances()).find((each) => each.id === id);
  const asked = instance === undefined ? [] : [instance];
  const answers = await presence.ask(asked, { about: 'key', key });
  const answer = answers.get(id ?? '');
  const hold = answer?.holds?.find(({ leaseId }) => leaseId === leaseIdOf(token));
  const { application, host, pid, version } = instance ?? {};
  const since = sinceMs === undefined ? undefined : new Date(sinceMs);
  const facts = { id, application, host, pid, version, since, term: hold?.fencingToken };
  return { isSelf: id === presence.id, ...known(facts), remainingMs };
}
