import { gaps } from '../../engine/liveness.js';
import type { HistoryEvent } from '../../faults/history.js';
import type { Fault, Scenario } from '../scenario.js';
import { longestTtlMs } from './losses.js';
import type { Facts } from './facts.js';

/** "One that is frozen costs its claim, 1 s or the TTL if that is shorter." */
const CLAIM_MS = 1_000;

/** "A connection that is silent for 5 s is replaced." */
const SILENT_MS = 5_000;

/** For so long after its last look the place of a process keeps several keys free (docs/architecture.md). */
const PLACE_COUNTS_MS = 15_000;

/** "At least every 5 s (or every third of its own TTL, if that is shorter)." */
const LOOKS_EVERY_MS = 5_000;

/** Nobody waits beside a free key for longer than docs/guarantees.md says. */
export function livenessViolations(
  scenario: Scenario,
  { events, grants, done }: Facts,
): readonly string[] {
  const { network, service, servers } = scenario;
  const ttlMs = longestTtlMs(scenario);
  const roundTripMs = (2 * (network.latencyUs + network.jitterUs)) / 1_000;
  const quietMs =
    (servers.length === 1 ? 10 : 40) * roundTripMs + (servers.length === 1 ? 50 : 500);
  const recoveryMs = Math.min(LOOKS_EVERY_MS, ttlMs) + CLAIM_MS + ttlMs + 3 * service.nodeTimeoutMs;
  const recoveries = done.map(({ fault, at, healedAt }) => ({
    from: at,
    until: (healedAt === Infinity ? at : healedAt) + recoveryMs + extraMs(fault, scenario),
  }));
  const isBlocked = scenario.processes.some(({ callers }) =>
    callers.some(({ operations }) => operations.some(({ blocksMs }) => blocksMs !== undefined)),
  );
  if (isBlocked || service.restartGuard !== undefined) return [];
  return gaps(events as readonly HistoryEvent[], grants, recoveries, quietMs);
}

/** What the end of a fault costs some of those who wait, beside the usual. */
function extraMs({ kind }: Fault, { processes, service }: Scenario): number {
  if (kind === 'link-stalled') return SILENT_MS + 2 * service.nodeTimeoutMs;
  // Several keys are kept for a process that does not ask for them any more, and that the server takes for alive.
  const severalKeys = processes.some(({ callers }) =>
    callers.some(({ operations }) => operations.some(({ keys }) => keys.length > 1)),
  );
  return severalKeys && (kind === 'process-vanished' || kind === 'process-stands-still')
    ? PLACE_COUNTS_MS
    : 0;
}
