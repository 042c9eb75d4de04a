import type { SimEvent } from '../history.js';
import { replaces, type Operation, type Scenario } from '../scenario.js';
import type { Facts } from './facts.js';
import { losesData } from './losses.js';

const PLANNED = new Set([
  ...['AbortError', 'Error', 'NonRetryableError'],
  ...['LockDeadlockError', 'LockReentrancyError'],
]);

/** "A connection that is silent for 5 s is replaced." */
const SILENT_MS = 5_000;

/** Between two tries of a call that waits, and to connect. */
const BACK_OFF_MS = 2_500;

/** Errors that nobody caught, failures for no reason, and losses that nothing explains. */
export function surprises(scenario: Scenario, { events, done }: Facts): readonly string[] {
  const isCalm = done.length === 0 && scenario.service.restartGuard === undefined;
  const operations = new Map<string, SimEvent & { readonly type: 'ask' }>();
  const closing = new Set<string>();
  const healedAt = Math.max(0, ...done.map((each) => each.healedAt));
  const longestOutageMs = SILENT_MS + BACK_OFF_MS + 2 * scenario.service.nodeTimeoutMs;
  const mayBeLost = mayLose(scenario);
  // The quarantine counts from the first look at the server: that may be when a caller in line is called.
  const isGuardedLate =
    scenario.service.restartGuard !== undefined && done.some(({ fault }) => losesData(fault));
  const isBlocked = scenario.processes.some(({ callers }) =>
    callers.some(({ operations }) => operations.some(({ blocksMs }) => blocksMs !== undefined)),
  );
  const mayBeReplaced = replaces(scenario);
  const mayFail = failing(done);
  const violations: string[] = [];
  for (const event of events) {
    if (event.type === 'ask') operations.set(`${event.client}#${event.ask}`, event);
    if (event.type === 'closing') closing.add(event.client);
    if (event.type === 'unhandled') violations.push(`unhandled: ${event.error}`);
    if (event.type === 'failed') {
      const { client, error } = event;
      const name = `${client}#${event.ask}`;
      const ask = operations.get(name);
      const isExpected =
        PLANNED.has(error) ||
        (error === 'LockServiceClosedError' && closing.has(client)) ||
        (error === 'LockLostError' && (!isCalm || mayBeLost || ask?.replaceWaitMs !== undefined)) ||
        // Whether it came in time is looked at elsewhere.
        (error === 'LockNotAttachedError' && ask?.how === 'attach') ||
        // "Answer to acquire later than its own validity: refused and cleaned up", behind a block too.
        (error === 'LockStoreUnavailableError' &&
          (mayBeLost || (!isCalm && (ask === undefined || mayFail(ask.keys)))));
      if (
        error === 'LockStoreUnavailableError' &&
        ask !== undefined &&
        !isBlocked &&
        !isGuardedLate
      )
        if (ask.at > healedAt && event.at - ask.at > longestOutageMs)
          violations.push(
            `outage: ${name} was told that the store is unavailable, ${(event.at - ask.at).toFixed(0)} ms after it asked and after everything was well`,
          );
      if (!isExpected) violations.push(`surprise: ${name} failed with ${error}`);
    }
    const isReplaced = event.type === 'lost' && event.reason === 'replaced' && mayBeReplaced;
    if (event.type === 'lost' && isCalm && !mayBeLost && !isReplaced && !closing.has(event.client))
      violations.push(`surprise: ${event.client}#${event.ask} was lost: ${event.reason}`);
    // "Nested calls have the token of the lock that they run under."
    if (event.type === 'not-nested')
      violations.push(
        `nested: ${event.client}#${event.ask} asked for keys that ${event.client}#${event.outer} holds around it, and was sent away`,
      );
    if (event.type === 'overdue')
      violations.push(`overdue: ${event.client}#${event.ask} does not know that its lease is over`);
  }
  return violations;
}

/** "Requests that share a call to Redis get separate results": whether calls for these keys may fail. */
function failing(done: Facts['done']): (keys: readonly string[]) => boolean {
  const harmed = done.flatMap(({ fault }) => (fault.kind === 'key-forbidden' ? [fault.key] : []));
  const isApart = done.length > 0 && harmed.length === done.length;
  return (keys) => !isApart || keys.some((key) => harmed.includes(key));
}

/** Leases that end although nothing is wrong. */
function mayLose({ processes }: Scenario): boolean {
  const ends = ({ autoExtend, maxHoldMs, blocksMs, inner }: Operation): boolean =>
    autoExtend === false ||
    maxHoldMs !== undefined ||
    blocksMs !== undefined ||
    (inner !== undefined && ends(inner));
  return processes.some(({ callers }) => callers.some(({ operations }) => operations.some(ends)));
}
