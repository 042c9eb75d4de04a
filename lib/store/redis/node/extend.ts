import type { ExtendOutcome, LeaseRenewal } from '../../lock-store.js';
import { isRefused } from '../../unavailable.js';
import { replyError } from '../client/reply-errors.js';
import { extendScript, type KeyAnswer, type KeyRenewal } from '../scripts/extend.js';
import { putsBack } from '../scripts/script.js';
import type { Server } from './server.js';

/** One script blocks the server for as long as it runs. */
const KEYS_PER_SCRIPT = 500;

/** A renewal that may put keys back which are gone, where their fences are still these. */
export interface Restoration extends LeaseRenewal {
  readonly expectedFences?: readonly (number | undefined)[];
}

/** What one node says to a renewal. */
export type RenewalVote = ExtendOutcome & {
  /** The fence beside which each key that is gone could be put back; only one of several masters tells it. */
  readonly fences?: readonly (number | undefined)[];
};

/** One key of one lease, and what became of it. */
interface Entry extends KeyRenewal {
  readonly key: string;
  readonly lease: AskedLease;
  answer: KeyAnswer;
}

interface AskedLease {
  readonly index: number;
  readonly entries: Entry[];
  /** How many keys have no answer yet. */
  awaited: number;
}

/**
 * Renews leases at one node, as many keys in one script as that should have.
 *
 * @param onVote called as soon as all keys of a lease have an answer: another master of a Cluster may be slower
 */
export async function extendAt(
  server: Server,
  leases: readonly Restoration[],
  onVote: (index: number, vote: RenewalVote) => void = () => undefined,
): Promise<readonly RenewalVote[]> {
  const serverUs = putsBack(server) ? server.clock.atLeastUs() : undefined;
  const votes: RenewalVote[] = leases.map(() => EXTENDED);
  const entries = leases.flatMap((renewal, index): readonly Entry[] => {
    const { keys, token, ttlMs, fencingToken, validForMs, expectedFences } = renewal;
    const lease: AskedLease = { index, entries: [], awaited: keys.length };
    const sureUntilUs = serverUs === undefined ? 0 : Math.floor(serverUs + validForMs * 1_000);
    keys.forEach((key, position) => {
      const expectedFence = expectedFences?.[position];
      const answer = EXTENDED; // until the reply says otherwise
      const request = { key, token, ttlMs, fencingToken, sureUntilUs, expectedFence };
      lease.entries.push({ ...request, lease, answer });
    });
    return lease.entries;
  });
  const onAnswer = ({ lease }: Entry): void => {
    lease.awaited -= 1;
    if (lease.awaited > 0) return;
    const vote = renewalVote(lease.entries, server);
    votes[lease.index] = vote;
    onVote(lease.index, vote);
  };
  const extending: Promise<void>[] = [];
  for (const together of server.bySlot(entries, ({ key }) => key))
    for (let at = 0; at < together.length; at += KEYS_PER_SCRIPT)
      extending.push(extendBatch(server, together.slice(at, at + KEYS_PER_SCRIPT), onAnswer));
  await Promise.all(extending);
  return votes;
}

async function extendBatch(
  server: Server,
  entries: readonly Entry[],
  onAnswer: (entry: Entry) => void,
): Promise<void> {
  const keys = entries.map(({ key }) => key);
  const ttlMs = Math.max(...entries.map((entry) => entry.ttlMs));
  const request = { keys, renewals: entries, ttlMs, whileDown: 'waits' } as const;
  const reply = await server.ask(extendScript, request);
  if ('status' in reply && isRefused(reply) && entries.length > 1) {
    // One renewal may be the reason: it names a key that the Redis user may not use any more, for instance.
    await Promise.all(entries.map((each) => extendBatch(server, [each], onAnswer)));
    return;
  }
  entries.forEach((entry, index) => {
    const answer = 'status' in reply ? reply : reply.answers[index];
    if (answer?.status === 'failed') {
      const names = Object.values(server.names(entry.key));
      entry.answer = server.connection.failed(replyError(answer.message), names);
    } else if (answer !== undefined) entry.answer = answer;
    onAnswer(entry);
  });
}

const EXTENDED: RenewalVote = { status: 'extended' };

/** A lease is all or nothing over its keys: what became of the worst of them became of it. */
function renewalVote(entries: readonly Entry[], { lineMode }: Server): RenewalVote {
  if (entries.every(({ answer }) => answer.status === 'extended')) return EXTENDED;
  const answers = entries.map(({ answer }) => answer);
  const lost = answers.filter((answer) => answer.status === 'lost');
  const stolen = lost.find(({ reason }) => reason === 'stolen');
  if (stolen !== undefined) return stolen;
  const [gone] = lost;
  if (gone === undefined) return answers.find(({ status }) => status === 'unavailable') ?? EXTENDED;
  if (lineMode !== 'quorum') return { status: 'lost', reason: 'released-elsewhere' };
  const fences = answers.map((answer) => (answer.status === 'lost' ? answer.fence : undefined));
  return { status: 'lost', reason: 'released-elsewhere', fences };
}
