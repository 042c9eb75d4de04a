import { nameOf, type Grant } from '../../faults/grants.js';
import type { HistoryEvent } from '../../faults/history.js';
import type { Scenario } from '../scenario.js';
import { STALLED_MS } from './facts.js';
import type { DoneFault } from './losses.js';

/** "The holder brings the lock to such a node after 50 ms": between so much and twice that. */
const COMPLETED_AFTER_MS = 50;

const SLACK_MS = 20;

/** "Again every 2 to 4 s at the latest." */
const COMPLETED_AT_LAST_MS = 4_500;

/** Has a server forget what it granted, at once. A clock that is set forward does, too. */
const FORGETTING: ReadonlySet<string> = new Set(['server-flushed', 'key-lost', 'server-clock-set']);

/** Wherever it is known less closely: which leases every server has by then. */
export function areComplete(atMs: number, done: readonly DoneFault[]): (grant: Grant) => boolean {
  const earlier = done.filter(({ at }) => at < atMs);
  const calmSince = Math.max(
    -Infinity,
    ...earlier.map(({ fault, at, healedAt }) =>
      fault.kind === 'link-stalled' ? at + STALLED_MS : healedAt,
    ),
  );
  return ({ grantedAt }) => Math.max(grantedAt, calmSince) + COMPLETED_AT_LAST_MS < atMs;
}

/**
 * "A bare majority": which leases every server had when a minority lost its data, and so survive that. Known only where nobody waits, and
 * nothing else goes wrong.
 */
export function survivorsOf(
  scenario: Scenario,
  done: readonly DoneFault[],
  calls: readonly HistoryEvent[],
): ((grant: Grant) => boolean) | undefined {
  const [loss, second] = done;
  if (loss === undefined || second !== undefined || !isPlain(scenario)) return undefined;
  if (!FORGETTING.has(loss.fault.kind)) return undefined;
  const { latencyUs, jitterUs } = scenario.network;
  const roundTripMs = (2 * (latencyUs + jitterUs)) / 1_000;
  const calling = callsOf(calls, 2 * roundTripMs);
  return ({ name, keys, grantedAt }) => {
    const from = grantedAt + COMPLETED_AFTER_MS - SLACK_MS;
    const until = grantedAt + 2 * COMPLETED_AFTER_MS + 4 * roundTripMs + SLACK_MS;
    const isDisturbed = calling.some(
      (call) =>
        call.name !== name &&
        call.keys.some((key) => keys.includes(key)) &&
        call.from < until &&
        call.until > from,
    );
    return until < loss.at && !isDisturbed;
  };
}

const isPlain = ({ servers, processes, service }: Scenario): boolean =>
  servers.length > 2 &&
  service.restartGuard === undefined &&
  processes.every(({ callers }) =>
    callers.every(({ operations }) =>
      operations.every(
        ({ how, mode, waitMs, blocksMs, inner, detach }) =>
          mode === 'exclusive' &&
          (waitMs === 0 || how === 'tryAcquire' || how === 'tryRun') &&
          blocksMs === undefined &&
          detach === undefined &&
          inner === undefined,
      ),
    ),
  );

/** When somebody asked for keys, and may have had votes. */
interface Calling {
  readonly name: string;
  readonly keys: readonly string[];
  readonly from: number;
  until: number;
}

function callsOf(events: readonly HistoryEvent[], slackMs: number): readonly Calling[] {
  const calls = new Map<string, Calling>();
  for (const event of events) {
    if (!('ask' in event)) continue;
    const name = nameOf(event);
    const call = calls.get(name);
    if (event.type === 'ask')
      calls.set(name, { name, keys: event.keys, from: event.at, until: Infinity });
    // Until it has given back.
    else if (event.type !== 'held' && call !== undefined) call.until = event.at + slackMs;
  }
  return [...calls.values()];
}
