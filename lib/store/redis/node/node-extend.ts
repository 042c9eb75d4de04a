import { withForeignKeys } from '../client/foreign-data.js';
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
  const entries = leases.flatMap((lease) =>
    lease.keys.map((key, position) => ({ lease, position, slot: slots.slot(key), key })),
  );
  const answers = new Map<Restoration, KeyAnswer[]>(leases.map((lease) => [lease, []]));
  await Promise.all(
    batches(entries).map(async (batch) => {
      const renewals = batch.map(({ lease, position, key }) => ({
        names: slots.names(key),
        token: lease.token,
        ttlMs: lease.ttlMs,
        fencingToken: lease.fencingToken,
        sureUntilUs: serverUs === undefined ? 0 : Math.floor(serverUs + lease.validForMs * 1_000),
        expectedFence: lease.expectedFences?.[position],
      }));
      const answerAt = await extendBatch(scripts, batch[0].slot, renewals);
      batch.forEach(({ lease, position }, index) => {
        const ofLease = answers.get(lease);
        if (ofLease !== undefined) ofLease[position] = answerAt(index);
      });
    }),
  );
  return leases.map((lease) => renewalVote(answers.get(lease) ?? []));
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
  scripts.doubtAfter(reply, slot);
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
      return connection.failure('error', withForeignKeys(key.message, names), 'for good');
    }
    return key.status === 'extended' ? (reply.shortfall ?? key) : key;
  };
}
