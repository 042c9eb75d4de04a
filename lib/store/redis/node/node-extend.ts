import { isRefused } from '../client/failure.js';
import { withForeignKeys } from '../client/foreign-data.js';
import { replyError } from '../client/reply-errors.js';
import { extendScript, type KeyRenewal } from '../scripts/extend.js';
import { batches } from './key-groups.js';
import { renewalVote, type KeyAnswer, type RenewalVote, type Restoration } from './node-answers.js';
import type { NodeScripts } from './node-scripts.js';

/** Renews leases at one node, as many keys in one script as that should have. */
export async function extendAt(
  scripts: NodeScripts,
  leases: readonly Restoration[],
): Promise<readonly RenewalVote[]> {
  const { slots, clock } = scripts.parts;
  const serverUs = scripts.putsBack ? clock.atLeastUs() : undefined;
  const entries: Entry[] = [];
  const answers: KeyAnswer[][] = [];
  for (const lease of leases) {
    const { token, ttlMs, fencingToken } = lease;
    const sureUntilUs =
      serverUs === undefined ? 0 : Math.floor(serverUs + lease.validForMs * 1_000);
    const ofLease: KeyAnswer[] = [];
    answers.push(ofLease);
    lease.keys.forEach((key, position) => {
      const expectedFence = lease.expectedFences?.[position];
      const names = slots.names(key);
      const renewal = { names, token, ttlMs, fencingToken, sureUntilUs, expectedFence };
      entries.push({ slot: slots.slot(key), renewal, position, ofLease });
    });
  }
  await Promise.all(
    batches(entries).map(async (batch) => {
      const renewals = batch.map(({ renewal }) => renewal);
      const answerAt = await extendBatch(scripts, batch[0].slot, renewals);
      batch.forEach(({ ofLease, position }, index) => {
        ofLease[position] = answerAt(index);
      });
    }),
  );
  return answers.map(renewalVote);
}

/** One key of one lease, and where its answer belongs. */
interface Entry {
  readonly slot: number;
  readonly renewal: KeyRenewal;
  readonly position: number;
  readonly ofLease: KeyAnswer[];
}

/** Says of each renewal, by its position, what became of it. */
async function extendBatch(
  scripts: NodeScripts,
  slot: number,
  renewals: readonly KeyRenewal[],
): Promise<(index: number) => KeyAnswer> {
  const { connection, options, lineMode } = scripts.parts;
  const call = extendScript.encode({
    renewals,
    epoch: scripts.guardedBy,
    fenceKeepMs: options.fenceKeepMs,
    maxTtlMs: options.restartGuard?.maxTtlMs,
    lineMode,
    turns: options.turns,
  });
  const sentAt = scripts.sentAt();
  const timeLimitMs = scripts.timeLimitMs(Math.max(...renewals.map(({ ttlMs }) => ttlMs)));
  const request = { script: extendScript, call, timeLimitMs, whileDown: 'waits' } as const;
  const reply = await scripts.write(slot, request);
  if (reply.status === 'unavailable' && isRefused(reply) && renewals.length > 1) {
    // One renewal may be the reason: it names a key that the Redis user may not use any more, for instance.
    const alone = await Promise.all(renewals.map((each) => extendBatch(scripts, slot, [each])));
    return (index) => alone[index]?.(0) ?? reply;
  }
  scripts.doubtAfter(reply);
  if (reply.status === 'unavailable') return () => reply;
  const answer = extendScript.decode(reply.value);
  if (answer.status === 'malformed') return () => connection.malformed(answer);
  scripts.learn(answer.clockUs, sentAt);
  return (index) => {
    const key = answer.keys[index];
    if (key === undefined) return connection.malformed({ reply: reply.value });
    if (key.status === 'malformed') return connection.malformed(key);
    if (key.status === 'failed') {
      const names = Object.values(renewals[index]?.names ?? {}) as string[];
      return connection.failed(replyError(withForeignKeys(key.message, names)));
    }
    return key.status === 'extended' ? (reply.shortfall ?? key) : key;
  };
}
