import type { ExtendOutcome, LeaseRenewal, Unavailable } from '../../lock-store.js';
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

/** One key of one lease. */
interface Entry {
  readonly key: string;
  readonly renewal: KeyRenewal;
  answer: KeyAnswer;
}

/** Renews leases at one node, as many keys in one script as that should have. */
export async function extendAt(
  server: Server,
  leases: readonly Restoration[],
): Promise<readonly RenewalVote[]> {
  const serverUs = putsBack(server) ? server.clock.atLeastUs() : undefined;
  const ofLeases = leases.map((lease) => {
    const { keys, token, ttlMs, fencingToken, validForMs, expectedFences } = lease;
    const sureUntilUs = serverUs === undefined ? 0 : Math.floor(serverUs + validForMs * 1_000);
    return keys.map((key, position): Entry => {
      const expectedFence = expectedFences?.[position];
      const renewal = { token, ttlMs, fencingToken, sureUntilUs, expectedFence };
      return { key, renewal, answer: EXTENDED };
    });
  });
  const extending: Promise<void>[] = [];
  for (const entries of server.bySlot(ofLeases.flat(), ({ key }) => key))
    for (let at = 0; at < entries.length; at += KEYS_PER_SCRIPT)
      extending.push(extendBatch(server, entries.slice(at, at + KEYS_PER_SCRIPT)));
  await Promise.all(extending);
  return ofLeases.map((entries) =>
    renewalVote(
      entries.map(({ answer }) => answer),
      server,
    ),
  );
}

/** The server has refused the request. */
const isRefused = ({ transient, sent }: Unavailable): boolean => !transient && sent !== false;

async function extendBatch(server: Server, entries: readonly Entry[]): Promise<void> {
  const keys = entries.map(({ key }) => key);
  const renewals = entries.map(({ renewal }) => renewal);
  const ttlMs = Math.max(...renewals.map((renewal) => renewal.ttlMs));
  const reply = await server.ask(extendScript, { keys, renewals, ttlMs, whileDown: 'waits' });
  if ('status' in reply && isRefused(reply) && entries.length > 1) {
    // One renewal may be the reason: it names a key that the Redis user may not use any more, for instance.
    await Promise.all(entries.map((each) => extendBatch(server, [each])));
    return;
  }
  entries.forEach((entry, index) => {
    const answer = 'status' in reply ? reply : reply.answers[index];
    if (answer === undefined) return;
    const names = Object.values(server.names(entry.key)) as string[];
    entry.answer =
      answer.status === 'failed'
        ? server.connection.failed(replyError(answer.message), names)
        : answer;
  });
}

const EXTENDED: RenewalVote = { status: 'extended' };

/** A lease is all or nothing over its keys: what became of the worst of them became of it. */
function renewalVote(answers: readonly KeyAnswer[], { lineMode }: Server): RenewalVote {
  const lost = answers.filter((answer) => answer.status === 'lost');
  const stolen = lost.find(({ reason }) => reason === 'stolen');
  if (stolen !== undefined) return stolen;
  const [gone] = lost;
  if (gone === undefined) return answers.find(({ status }) => status === 'unavailable') ?? EXTENDED;
  if (lineMode !== 'quorum') return { status: 'lost', reason: 'released-elsewhere' };
  const fences = answers.map((answer) => (answer.status === 'lost' ? answer.fence : undefined));
  return { status: 'lost', reason: 'released-elsewhere', fences };
}
