import { quoteKeys } from '../errors/quote-keys.js';
import { elapsedMs, within } from '../time/clock.js';
import type { Components } from './compose.js';

/** So long a shutdown waits for holders without a word. */
const SILENT_MS = 1_000;

/** At most this many of the locks that a shutdown waits for are named. */
const MOST_NAMED = 5;

/** How long, after its time is up, a shutdown waits for a store that does not answer. */
const GIVE_BACK_MS = 1_000;

/** How long, after its time is up, a shutdown waits for a store that replies, while there are many locks to release. */
const LONGEST_GIVE_BACK_MS = 10_000;

/**
 * Ends a lock service: it grants no more locks, lets holders finish, releases all locks and closes the connections.
 *
 * @param timeoutMs for how long holders may continue
 */
export async function shutDown(parts: Components, timeoutMs: number): Promise<void> {
  const { runtime, queue, keeper, once, scheduler, store, presence, forgotten, warnings } = parts;
  const since = runtime.now();
  queue.close();
  const drained = keeper.drained().then(() => true);
  const silentMs = Math.min(timeoutMs, SILENT_MS);
  if (!(await within(runtime, silentMs, drained))) {
    reportHeld(parts, timeoutMs - silentMs);
    await within(runtime, timeoutMs - silentMs, drained);
  }
  const overtimeMs = timeoutMs - elapsedMs(since, runtime.now()) + GIVE_BACK_MS;
  // Holders are notified before any wait. Attempts are returned before their locks are released.
  once.giveBack();
  for (const lease of keeper.leases) keeper.lose(lease, 'shutdown');
  keeper.endReplaced();
  await whileConfirmed(
    parts,
    overtimeMs,
    Promise.all([once.settled(), queue.settled().then(() => keeper.finish()), presence.stop()]),
  );
  keeper.close();
  forgotten.close();
  for (const kind of warnings) kind.flush();
  scheduler.toBackground();
  await store.close();
}

/** What a shutdown waits for, or ends. */
function reportHeld(parts: Components, forMs: number): void {
  const held = parts.keeper.leases;
  if (held.length === 0) return;
  const now = parts.runtime.now();
  const named = held.slice(0, MOST_NAMED).map((lease) => {
    const place = lease.request.site?.place;
    const where = place === undefined ? '' : `, acquired at ${place}`;
    const keys = quoteKeys(lease.keys);
    return `${keys} (held for ${String(Math.round(lease.heldForMs(now)))} ms${where})`;
  });
  if (held.length > MOST_NAMED) named.push(`and ${String(held.length - MOST_NAMED)} more`);
  const count = held.length === 1 ? '1 lock' : `${String(held.length)} locks`;
  const what =
    forMs > 0
      ? `The shutdown waits up to ${String(Math.round(forMs))} ms more for ${count} not released yet`
      : `The shutdown ends ${count} not released yet`;
  parts.log.warn(
    `${what}: ${named.join('; ')}. A lock of acquire() is held until it is released: do it in a finally block, or use run() or "await using".`,
  );
}

/**
 * Resolves when all locks are released, or after `ms`. It waits longer while the store confirms a release at least
 * every second.
 */
async function whileConfirmed(
  { runtime, keeper }: Components,
  ms: number,
  givenBack: Promise<unknown>,
): Promise<void> {
  const since = runtime.now();
  const whole = givenBack.then(() => true);
  let left = keeper.unconfirmed;
  let isOver = await within(runtime, ms, whole);
  while (isOver === undefined && keeper.unconfirmed < left) {
    if (elapsedMs(since, runtime.now()) >= LONGEST_GIVE_BACK_MS) return;
    left = keeper.unconfirmed;
    isOver = await within(runtime, GIVE_BACK_MS, whole);
  }
}
