import type { LeaseRenewal } from '../../lock-store.js';
import { isRefused } from '../client/failure.js';
import { withForeignKeys } from '../client/foreign-data.js';
import { replyError } from '../client/reply-errors.js';
import { extendScript, type KeyAnswer, type KeyRenewal } from '../scripts/extend.js';
import { putsBack } from '../scripts/script.js';
import type { Server } from './server.js';

/** One script blocks the server for as long as it runs. */
const KEYS_PER_SCRIPT = 500;

/** A renewal that may put a key back which is gone, where its fence is still this one. */
export interface Restoration extends LeaseRenewal {
  readonly expectedFence?: number | undefined;
}

/** Renews leases at one node, as many in one script as that should have. */
export async function extendAt(
  server: Server,
  leases: readonly Restoration[],
): Promise<readonly KeyAnswer[]> {
  const serverUs = putsBack(server) ? server.clock.atLeastUs() : undefined;
  const bySlot = new Map<number, Entry[]>();
  leases.forEach(({ validForMs, expectedFence, ...lease }, position) => {
    const sureUntilUs = serverUs === undefined ? 0 : Math.floor(serverUs + validForMs * 1_000);
    const entry = { position, renewal: { ...lease, sureUntilUs, expectedFence } };
    const slot = server.slot(lease.key);
    const entries = bySlot.get(slot);
    if (entries === undefined) bySlot.set(slot, [entry]);
    else entries.push(entry);
  });
  const answers: KeyAnswer[] = [];
  const extending: Promise<void>[] = [];
  for (const entries of bySlot.values())
    for (let at = 0; at < entries.length; at += KEYS_PER_SCRIPT)
      extending.push(extendBatch(server, entries.slice(at, at + KEYS_PER_SCRIPT), answers));
  await Promise.all(extending);
  return answers;
}

/** A renewal, and where its answer belongs. */
interface Entry {
  readonly renewal: KeyRenewal;
  readonly position: number;
}

async function extendBatch(
  server: Server,
  entries: readonly Entry[],
  answers: KeyAnswer[],
): Promise<void> {
  const renewals = entries.map(({ renewal }) => renewal);
  const ttlMs = Math.max(...renewals.map((renewal) => renewal.ttlMs));
  const key = renewals[0]?.key ?? '';
  const reply = await server.ask(extendScript, { key, renewals, ttlMs, whileDown: 'waits' });
  if ('status' in reply && isRefused(reply) && entries.length > 1) {
    // One renewal may be the reason: it names a key that the Redis user may not use any more, for instance.
    await Promise.all(entries.map((each) => extendBatch(server, [each], answers)));
    return;
  }
  entries.forEach(({ renewal, position }, index) => {
    const answer = 'status' in reply ? reply : reply.answers[index];
    if (answer === undefined) return;
    const names = Object.values(server.names(renewal.key)) as string[];
    answers[position] =
      answer.status === 'failed'
        ? server.connection.failed(replyError(withForeignKeys(answer.message, names)))
        : answer;
  });
}
