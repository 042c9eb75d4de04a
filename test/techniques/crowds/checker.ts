/** Says from the history of a run whether the engine kept its promises: safety, liveness and economy. */
import { clientsThatDidNotEnd, lateAnswers } from '../faults/answers.js';
import { detachViolations, partsOf, withLeases } from '../faults/detached.js';
import { type Extent, extentOf, unseen } from '../faults/extent.js';
import { type Grant, grantsOf, nameOf } from '../faults/grants.js';
import { type AnyEvent, type CallEvent, callEvents, type HistoryEvent } from '../faults/history.js';
import { leaderViolations } from '../faults/leaders.js';
import { repeatedWork } from '../faults/once-work.js';
import {
  isTurnOfLostLease,
  type Loss,
  overlaps,
  tokensAhead,
  tokensTogether,
  wrongTokens,
} from '../faults/safety.js';
import { remembered, repeatedRuns } from './jobs.js';
import { gaps, pauses, type Recovery, refusals } from './liveness.js';
import type { Crew, EnginePlan, Fault, StoreKind } from './plan.js';

/** For so long nobody holds anything while somebody waits. */
const LONGEST_GAP_MS = 250;

/** Whoever is in line looks again after so long, or a third of its TTL. */
const LONGEST_SLEEP_MS = 5_000;

/** Until a connection is made again, and until somebody whose claim died with a process is passed over. */
const RECONNECTED_MS = 2_000;
const LONGEST_CLAIM_MS = 1_000;

/**
 * Of fencing tokens: what is reserved for turns is 1 ms of them. Over several masters, what is proposed so that they agree is a guess of
 * when the message will arrive, which a server takes when it is at most so far off.
 */
const mostAheadMs = (store: StoreKind): number => (store === 'three-masters' ? 1_000 : 20);

/** Scripts that one server runs for one call, granted or refused. In a circle of callers who hand keys on it is hundreds. */
const MOST_SCRIPTS_A_CALL = 20;

const FEWEST_GRANTS = 20;

/** Among so many grants are some of all kinds that were planned. */
const MANY_GRANTS = 400;

/** Errors that a caller may see under faults. */
const EXPECTED_ERRORS: ReadonlySet<string> = new Set(['AbortError', 'LockStoreUnavailableError']);

/** A fault, as it was done. */
export interface DoneFault {
  readonly fault: Fault;
  readonly from: number;
  readonly to: number;
}

export interface EngineHistory {
  readonly plan: EnginePlan;
  readonly events: readonly HistoryEvent[];
  readonly faults: readonly DoneFault[];
  /** How many scripts the busiest server ran. */
  readonly scripts: number;
}

/** All violations, in words; none if the run was as it should be. */
export function checkEngine({ plan, events, faults, scripts }: EngineHistory): readonly string[] {
  const killed = new Set(
    events.flatMap((event) => (event.type === 'killed' ? [event.client] : [])),
  );
  const fates = { killed, stops: pauses(events) };
  const calls = partsOf(events);
  const grants = withLeases(grantsOf(calls, killed), events);
  const ttlMs = Math.max(...plan.crews.flatMap((crew) => crew.ttlsMs));
  const recoveries = faults.map((done) => recoveryOf(done, ttlMs));
  const losses = [
    ...faults.flatMap((done) => lossOf(done, ttlMs)),
    ...replacements(calls, faults, ttlMs),
  ];
  const job = plan.crews.find((crew) => crew.job !== undefined)?.job;
  const hasFailedOver = faults.some(({ fault }) => fault.kind === 'fail-over');
  return [
    ...overlaps(grants, losses),
    // "A shared lock that older data bring back" may have a smaller one.
    ...wrongTokens(
      grants.filter(
        (grant) =>
          !(hasFailedOver && grant.mode !== 'exclusive') &&
          !isSoonAfter(grant, plan.store, faults) &&
          !isTurnOfLostLease(grant, grants, losses),
      ),
    ),
    ...tokensTogether(grants, losses),
    ...tokensAhead(grants, mostAheadMs(plan.store)),
    ...detachViolations(events, (from, to) =>
      recoveries.every((recovery) => recovery.until < from || recovery.from > to),
    ),
    ...leaderViolations(events, killed),
    ...repeatedWork(
      remembered(
        events,
        faults.filter(({ fault }) => FORGETS.has(fault.kind)),
      ),
    ),
    ...(job === undefined ? [] : repeatedRuns(grants, job, losses)),
    ...gaps(calls, grants, { recoveries, mostMs: LONGEST_GAP_MS, areLimitsStated: true }),
    ...refusals(events),
    ...lateAnswers(calls, fates),
    ...clientsThatDidNotEnd(events, fates),
    ...strangeErrors(events),
    ...(faults.length === 0 ? losts(events) : []),
    ...wasted(scripts, events),
    ...vacuities(plan, grants, faults),
    ...(grants.length < MANY_GRANTS ? [] : unseen(extentOf(events), planned(plan), grants.length)),
  ];
}

/**
 * "Several masters that all lose their data at once": a token may be ahead of their clocks by 5 ms and the time of its request, up to
 * 100 ms. A lock that is granted within that time after the loss may have a smaller one.
 */
const isSoonAfter = (
  { askedAt, grantedAt }: Grant,
  store: StoreKind,
  faults: readonly DoneFault[],
): boolean =>
  store === 'three-masters' &&
  faults.some(
    ({ fault, from, to }) =>
      fault.kind === 'all-data-lost' && grantedAt > from && askedAt < to + AHEAD_MS,
  );

const AHEAD_MS = 105;

/** Replication is asynchronous: a fail-over may forget what was written last. */
const FORGETS: ReadonlySet<Fault['kind']> = new Set(['all-data-lost', 'fail-over']);

function lossOf({ fault, from, to }: DoneFault, ttlMs: number): readonly Loss[] {
  if (FORGETS.has(fault.kind)) return [{ from, until: to + ttlMs }];
  if (fault.kind === 'key-lost') return [{ from, until: to + ttlMs, keys: [fault.key] }];
  return [];
}

/** In an outage, and until each process has described itself to Redis again, which it does every 5 s. */
const UNKNOWN_MS = 5_500;

/** "The newer call does not wait for the older work" if it cannot notify its process, and that "detects the loss at its next renewal". */
function replacements(
  calls: readonly AnyEvent[],
  faults: readonly DoneFault[],
  ttlMs: number,
): readonly Loss[] {
  const open = new Map<string, Ask>();
  return callEvents(calls).flatMap((event) => {
    const ask = open.get(nameOf(event));
    if (event.type === 'ask' && event.replaceWaitMs !== undefined) open.set(nameOf(event), event);
    if (ask === undefined || !open.delete(nameOf(event))) return [];
    const isCalm = faults.every(({ from, to }) => from > event.at || to + UNKNOWN_MS < ask.at);
    return isCalm ? [] : [{ from: ask.at, until: event.at + ttlMs, keys: ask.keys }];
  });
}

function recoveryOf({ fault, from, to }: DoneFault, ttlMs: number): Recovery {
  switch (fault.kind) {
    case 'connections-killed':
    case 'slot-moved':
      return { from, until: to + RECONNECTED_MS };
    case 'fail-over':
      return { from, until: to + RECONNECTED_MS + LONGEST_CLAIM_MS + ttlMs };
    case 'process-killed':
      return {
        from,
        until: to + (fault.asks === true ? Math.max(LONGEST_CLAIM_MS, ttlMs) : LONGEST_CLAIM_MS),
      };
    default:
      return { from, until: to + Math.min(LONGEST_SLEEP_MS, ttlMs / 3) };
  }
}

function strangeErrors(events: readonly HistoryEvent[]): readonly string[] {
  const asks = new Map<string, Ask>();
  const strange = new Set<string>();
  for (const event of events) {
    if (event.type === 'ask') asks.set(nameOf(event), event);
    if (event.type !== 'failed' || EXPECTED_ERRORS.has(event.error)) continue;
    const ask = asks.get(nameOf(event));
    if (ask === undefined || !mayFailWith(event.error, ask)) strange.add(event.error);
  }
  return [...strange].map((error) => `error: a caller was given a ${error}`);
}

type Ask = CallEvent & { readonly type: 'ask' };

/** A caller that holds a lock already may have lost it, and a newer call may have come. Other rules check detached locks. */
function mayFailWith(error: string, { how, replaceWaitMs }: Ask): boolean {
  switch (error) {
    case 'LockLostError':
      return how === 'attach' || how === 'lead' || how === 'once' || replaceWaitMs !== undefined;
    case 'LockNotAttachedError':
      return how === 'attach';
    default:
      return false;
  }
}

function losts(events: readonly HistoryEvent[]): readonly string[] {
  const lost = events.filter((event) => event.type === 'lost' && !MEANT.has(event.reason));
  return lost.length === 0 ? [] : [`lost: ${lost.length} locks, without any fault`];
}

/** Why a lock is over that nothing is wrong with. */
const MEANT: ReadonlySet<string> = new Set(['released', 'replaced']);

function wasted(scripts: number, events: readonly HistoryEvent[]): readonly string[] {
  const calls = events.filter((event) => event.type === 'ask').length;
  const perCall = scripts / Math.max(1, calls);
  return perCall <= MOST_SCRIPTS_A_CALL
    ? []
    : [`wasted: one server ran ${perCall.toFixed(0)} scripts for each of ${calls} calls`];
}

function planned({ crews }: EnginePlan): readonly (keyof Extent)[] {
  const wanted: Readonly<Record<keyof Extent, (crew: Crew) => boolean>> = {
    attached: ({ detaches = 0 }) => detaches > 0,
    terms: ({ lead }) => lead !== undefined,
    'done once': ({ once = 0 }) => once > 0,
    jobs: ({ job }) => job !== undefined,
    replacing: ({ replaces = 0 }) => replaces > 0,
  };
  return (Object.keys(wanted) as (keyof Extent)[]).filter((each) => crews.some(wanted[each]));
}

/** Reasons why a run without violations would prove nothing. */
function vacuities(
  { faults: planned }: EnginePlan,
  grants: readonly Grant[],
  faults: readonly DoneFault[],
): readonly string[] {
  const missing = planned.length - faults.length;
  const last = Math.max(...faults.map(({ to }) => to));
  return [
    ...(grants.length >= FEWEST_GRANTS ? [] : [`vacuous: ${grants.length} grants`]),
    ...(missing === 0 ? [] : [`vacuous: ${missing} faults were not done`]),
    ...(faults.length === 0 || grants.some(({ grantedAt }) => grantedAt > last)
      ? []
      : ['vacuous: no grant after the last fault']),
  ];
}
