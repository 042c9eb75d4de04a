import { gaps, type Recovery } from '../../crowds/liveness.js';
import { isOfOperator, replaces, type Operation, type Scenario } from '../scenario.js';
import { bringsOlderData, longestTtlMs, type DoneFault } from './losses.js';
import { STALLED_MS, type Facts } from './facts.js';

/** "One that is frozen costs its claim, 1 s or the TTL if that is shorter." */
const CLAIM_MS = 1_000;

/** "At least every 5 s (or every third of its own TTL, if that is shorter)." */
const LOOKS_EVERY_MS = 5_000;

const RESETS: ReadonlySet<string> = new Set(['link-reset', 'connections-reset']);

/** "Replaced after 50 ms to 1 s"; and what was asked for meanwhile is removed at once, and asked for again within a second. */
const RECONNECTED_MS = 2_000;

/** "It asks again after 1 s, 2 s, 4 s, and then every 5 s": a candidate that was refused. */
const REFUSED_MS = 5_000;

/** "Its locks wait by asking again": each process every 100 to 300 ms. */
const POLLS_EVERY_MS = 350;

/** Until an operator has asked all processes, twice. */
const OPERATES_MS = 1_000;

/** Until a server knows that a process has died. */
const DEAD_MS = 100;

/** A caller of several keys may hold one that is free for so long while it waits for another one; and so may the next one. */
const FREE_KEY_MS = 3_000;

/** Of an attempt that finds the work done: it asks, leaves and gives back. */
const TRIPS_OF_AN_ATTEMPT = 4;

/** Nobody waits beside a free key for longer than docs/internals/promises.md says. */
export function livenessViolations(scenario: Scenario, facts: Facts): readonly string[] {
  const all = operationsOf(scenario);
  const isBlocked = all.some(({ blocksMs }) => blocksMs !== undefined);
  // Calls that replace others look again after a pause: `replacing.ts` checks them.
  const isReplaced = replaces(scenario);
  if (
    isReplaced ||
    isBlocked ||
    all.some(keepsUnseen) ||
    scenario.service.restartGuard !== undefined
  )
    return [];
  const { calls, grants, done } = facts;
  const recoveries = done.map((each) => recoveryOf(each, scenario, facts));
  const mostMs = quietMs(scenario) + claimsMs(scenario, done);
  const areLimitsStated = all.every(({ setLimit }) => setLimit === undefined);
  const patience = { recoveries, mostMs, areLimitsStated };
  return [
    ...gaps(calls, grants, patience),
    ...gaps(calls, grants, { ...patience, mostMs: mostMs + FREE_KEY_MS, isEachKeyAlone: true }).map(
      (gap) => `free key: ${gap.slice(gap.indexOf(':') + 2)}`,
    ),
  ];
}

/** "With `release: 'on-expiry'` the same holds for a whole `ttl` after the end": when nobody has seen the end, nobody knows until when. */
const keepsUnseen = ({ release, autoExtend, maxHoldMs }: Operation): boolean =>
  release === 'on-expiry' && (autoExtend === false || maxHoldMs !== undefined);

const operationsOf = ({ processes }: Scenario): readonly Operation[] =>
  processes.flatMap(({ callers }) => callers.flatMap(({ operations }) => operations));

/** Where nothing is wrong. */
export function quietMs(scenario: Scenario): number {
  const { network, servers, processes, service } = scenario;
  const roundTripMs = (2 * (network.latencyUs + network.jitterUs)) / 1_000;
  const callers = processes.flatMap((process) => process.callers).length;
  const onceTrips = operationsOf(scenario).some(({ how }) => how === 'once')
    ? TRIPS_OF_AN_ATTEMPT * callers
    : 0;
  return servers.length === 1
    ? (10 + onceTrips) * roundTripMs + 50 + (service.hasDriver === true ? POLLS_EVERY_MS : 0)
    : (40 + onceTrips) * roundTripMs + 500;
}

/** A place whose process is taken for alive, but makes nothing of its claim, costs it whenever it is the turn of that place. */
function claimsMs({ processes }: Scenario, done: readonly DoneFault[]): number {
  const callers = processes.map((process) => process.callers.length);
  const places = done.flatMap(({ fault }) => {
    // A process in line that does nothing, or is not heard.
    if (
      fault.kind === 'process-vanished' ||
      fault.kind === 'process-stands-still' ||
      fault.kind === 'link-stalled'
    )
      return [callers[fault.process]!];
    // "If old data come back, places may come back with them that callers have left since."
    return bringsOlderData(fault) ? callers : [];
  });
  return CLAIM_MS * places.reduce((sum, count) => sum + count, 0);
}

function recoveryOf(
  { fault, at, healedAt }: DoneFault,
  scenario: Scenario,
  { done, events, grants }: Facts,
): Recovery {
  const ttlMs = longestTtlMs(scenario);
  const { nodeTimeoutMs } = scenario.service;
  const usualMs = Math.min(LOOKS_EVERY_MS, ttlMs) + CLAIM_MS + ttlMs + 3 * nodeTimeoutMs;
  const from = healedAt === Infinity ? at : healedAt;
  const until =
    from +
    usualMs +
    (fault.kind === 'server-clock-set' || bringsOlderData(fault) ? setBackMs(done) : 0);
  const severalKeys = operationsOf(scenario).some(({ keys }) => keys.length > 1);
  const hasLeaders = operationsOf(scenario).some(({ lead }) => lead !== undefined);
  switch (fault.kind) {
    case 'link-reset':
    case 'connections-reset':
      return done.every(({ fault: { kind } }) => RESETS.has(kind)) && !endsDuring(events, from)
        ? { from: at, until: from + RECONNECTED_MS + CLAIM_MS + 3 * nodeTimeoutMs }
        : { from: at, until };
    case 'process-vanished': {
      // Its place is taken for alive, and others join the holders only after its turn, which comes when these end.
      const together = grants.filter(({ mode }) => mode !== 'exclusive');
      return {
        from: at,
        until: until + Math.max(0, ...together.map((held) => held.to - held.from)),
      };
    }
    case 'process-killed':
      // "A process that dies in line costs nothing: it is passed over." Its leases have to run out, also those it never heard of.
      return scenario.servers.length === 1 &&
        !severalKeys &&
        done.every(({ fault: { kind } }) => kind === 'process-killed')
        ? { from: at, until: at + ttlMs + DEAD_MS }
        : { from: at, until };
    case 'force-released':
    case 'seen-released':
    case 'instance-released':
    case 'work-forgotten': {
      // "The old holder is notified first; then the next caller gets the key."
      const thinksMs = 'afterMs' in fault ? fault.afterMs : 0;
      return done.every((each) => isOfOperator(each.fault))
        ? { from: at, until: at + thinksMs + OPERATES_MS }
        : { from: at, until: until + thinksMs };
    }
    case 'password-changed':
      // A connection that listens, and was refused, tries again after 5 s: its callers ask again meanwhile.
      return { from: at, until: until + LOOKS_EVERY_MS };
    case 'memory-full':
    case 'foreign-value':
    case 'key-forbidden':
      return { from: at, until: until + (hasLeaders ? REFUSED_MS : 0) };
    case 'link-stalled':
      return { from: at, until: until + STALLED_MS + standstillsMs(done) };
    default:
      return { from: at, until };
  }
}

/** Who shuts down while its connection is replaced may not get to take back what it has asked for: its lease has to run out. */
const endsDuring = (events: Facts['events'], resetAt: number): boolean =>
  events.some(
    ({ type, at }) => type === 'ended' && at >= resetAt && at <= resetAt + RECONNECTED_MS,
  );

/** "Keys of dead holders stay longer", those that come back with older data too. */
const setBackMs = (done: readonly DoneFault[]): number =>
  done.reduce(
    (sum, { fault }) => sum + (fault.kind === 'server-clock-set' ? Math.max(0, -fault.byMs) : 0),
    0,
  );

const standstillsMs = (done: readonly DoneFault[]): number =>
  done.reduce(
    (sum, { fault }) => (fault.kind === 'process-stands-still' ? sum + fault.forMs : sum),
    0,
  );
