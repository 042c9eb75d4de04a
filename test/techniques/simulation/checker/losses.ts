/** When the store may forget what it granted, by docs/internals/promises.md: the only times at which two may hold one key. */
import { nameOf, type Grant } from '../../faults/grants.js';
import type { HistoryEvent } from '../../faults/history.js';
import { isNobody } from '../../faults/detached.js';
import type { Loss } from '../../faults/safety.js';
import type { SimEvent } from '../history.js';
import { isOfOperator, type Fault, type Operation, type Scenario } from '../scenario.js';
import { isCalm, isCalmBeside } from './facts.js';
import { areComplete, survivorsOf } from './bare-majority.js';

/** For answers on their way, and timers that are late. */
const SLACK_MS = 50;

/** A fault that was done, and when. */
export interface DoneFault {
  readonly fault: Fault;
  readonly at: number;
  readonly healedAt: number;
}

export function doneFaults(
  { faults }: Scenario,
  events: readonly SimEvent[],
): readonly DoneFault[] {
  const healed = new Map(
    events.flatMap((event) => (event.type === 'healed' ? [[event.fault, event.at] as const] : [])),
  );
  return events.flatMap((event) =>
    event.type === 'fault'
      ? [
          {
            fault: faults[event.fault]!,
            at: event.at,
            healedAt: healed.get(event.fault) ?? Infinity,
          },
        ]
      : [],
  );
}

/** Has a server know what was over. */
export const bringsOlderData = (fault: Fault): boolean =>
  fault.kind === 'fail-over' || 'missingMs' in fault;

/** The longest lease that anybody asks for. */
export function longestTtlMs({ processes }: Scenario): number {
  const ttls = (operation: Operation): readonly number[] => [
    operation.ttlMs,
    // The lease of a job lasts for `atLeast`.
    operation.isJob === true ? (operation.minHoldMs ?? 0) : 0,
    operation.extend?.ttlMs ?? 0,
    operation.detach?.ttlMs ?? 0,
    ...(operation.inner === undefined ? [] : ttls(operation.inner)),
  ];
  return Math.max(
    0,
    ...processes.flatMap(({ callers }) =>
      callers.flatMap(({ operations }) => operations.flatMap(ttls)),
    ),
  );
}

/** By then every caller that was granted anything before the loss knows of it, or its lease is over. */
export function lossesOf(
  scenario: Scenario,
  done: readonly DoneFault[],
  calls: readonly HistoryEvent[],
): readonly Loss[] {
  const ttlMs = longestTtlMs(scenario);
  const survivors = survivorsOf(scenario, done, calls);
  return [
    ...replacements(calls, done, ttlMs),
    ...done.flatMap(({ fault, at, healedAt }) => {
      // "If the wall clock was set back since the lease began, nothing tells of the sleep": the next renewal does.
      if (oversleeps({ fault, at: at - ttlMs, healedAt }, done))
        return [{ from: at, until: healedAt + ttlMs + SLACK_MS }];
      if (!forgets(fault, scenario, done)) return [];
      const lateMs = isOfOperator(fault) ? latestArrivalMs(at, scenario, done) : 0;
      // "The old holder is notified first; then the next caller gets the key."
      const isTelling =
        isOfOperator(fault) &&
        !closesMeanwhile(fault, calls, [at, at + lateMs]) &&
        !isDeaf(scenario, calls, [at, at + lateMs]);
      const isNotified = isTelling && isCalmBeside({ done }, at, at + lateMs);
      const isOne = scenario.servers.length === 1;
      if (isNotified && isOne) return [];
      const survives = isNotified
        ? wasComplete(at, scenario)
        : fault.kind === 'key-lost' && isOne
          ? keepsOut(at)
          : (survivors ??
            (isOfMinority(fault, scenario, done) ? areComplete(at, done) : undefined));
      const isNoticed = isTold(fault) && done.every(answers) && !hasFixedLeases(scenario);
      return [
        {
          from: at,
          // "At the next renewal is a third of the TTL later at most, if Redis answers."
          until:
            (fault.kind === 'foreign-value' ? healedAt : at) +
            lateMs +
            (isNoticed ? ttlMs / 3 : ttlMs) +
            SLACK_MS,
          ...('key' in fault && { keys: [fault.key] }),
          ...(survives && { survives }),
        },
      ];
    }),
  ];
}

/** "The newer call does not wait" for a holder that it cannot notify, and that "detects the loss at its next renewal". */
function replacements(
  calls: readonly HistoryEvent[],
  done: readonly DoneFault[],
  ttlMs: number,
): readonly Loss[] {
  return calls.flatMap((ask, index) => {
    if (ask.type !== 'ask' || ask.replaceWaitMs === undefined) return [];
    const answer = calls
      .slice(index + 1)
      .find((event) => 'ask' in event && nameOf(event) === nameOf(ask));
    const until = answer?.at ?? Infinity;
    if (isCalm({ done }, ask.at, until)) return [];
    return [{ from: ask.at, until: until + ttlMs + SLACK_MS, keys: ask.keys }];
  });
}

/** "With several masters, its grant was not complete": it had votes when an operator ended them. */
const wasComplete =
  (atMs: number, { network, service }: Scenario) =>
  ({ askedAt, grantedAt }: Grant): boolean => {
    const lateMs = service.nodeTimeoutMs + (2 * (network.latencyUs + network.jitterUs)) / 1_000;
    return askedAt > atMs || grantedAt <= atMs || grantedAt > atMs + lateMs;
  };

/** "If the marker is deleted, Holdfast still refuses writers": a writer that asks after that. */
const keepsOut =
  (atMs: number) =>
  (holder: Grant, other: Grant): boolean =>
    holder.mode !== 'exclusive' && other.askedAt > atMs;

interface Event {
  readonly type: string;
  readonly at: number;
  readonly client?: string;
}

/** A new instance takes so many round trips until it has subscribed, and its record says so. */
const TRIPS_TO_BE_KNOWN = 10;

/** "A holder that cannot be notified": work blocks its process, or it has just started; and a lock that is detached has no holder. */
function isDeaf(
  { network }: Scenario,
  events: readonly Event[],
  [from, until]: readonly [number, number],
): boolean {
  const knownMs = (TRIPS_TO_BE_KNOWN * 2 * (network.latencyUs + network.jitterUs)) / 1_000;
  return events.some(({ type, at, client }) => {
    if (at > until) return false;
    if (type === 'opened') return at > from - knownMs;
    if (type === 'granted' && isNobody(client)) return true;
    const resumes = (other: Event): boolean =>
      other.type === 'resumed' && other.client === client && other.at > at && other.at < from;
    return type === 'paused' && !events.some(resumes);
  });
}

/** The process of an operator shuts down: it receives no replies any more. */
const closesMeanwhile = (
  fault: Fault,
  events: readonly Event[],
  [from, until]: readonly [number, number],
): boolean =>
  'process' in fault &&
  events.some(
    ({ type, at, client }) =>
      type === 'closing' && client === `p${String(fault.process)}` && at > from && at < until,
  );

/** A request of an operator's is sent again for a while, and what was sent over a link that is cut arrives when that is healed. */
function latestArrivalMs(at: number, { service }: Scenario, done: readonly DoneFault[]): number {
  const cuts = done.filter((cut) => cut.fault.kind.startsWith('link-') && cut.healedAt > at);
  const thinksMs = Math.max(
    0,
    ...done.map(({ fault }) => ('afterMs' in fault ? fault.afterMs : 0)),
  );
  const sentMs = Math.max(at, ...cuts.map(({ healedAt }) => healedAt)) - at;
  return sentMs + thinksMs + 10 * service.nodeTimeoutMs;
}

/** @param at when its oldest lease can have begun */
const oversleeps = ({ fault, at, healedAt }: DoneFault, done: readonly DoneFault[]): boolean =>
  fault.kind === 'process-stands-still' &&
  fault.how === 'asleep' &&
  done.some(
    (other) =>
      other.fault.kind === 'process-clock-set' &&
      other.fault.process === fault.process &&
      other.fault.byMs < 0 &&
      other.at >= at &&
      other.at <= healedAt,
  );

/** The server answers all the while. */
const isTold = ({ kind }: Fault): boolean =>
  kind === 'server-flushed' ||
  kind === 'key-lost' ||
  kind === 'server-clock-set' ||
  kind === 'data-restored';

/** Renewals are answered in spite of it. */
const answers = ({ fault }: DoneFault): boolean => isTold(fault) || LETS_RENEW.has(fault.kind);

const LETS_RENEW: ReadonlySet<string> = new Set([
  ...['process-shut-down', 'line-lost', 'scripts-flushed', 'memory-full'],
]);

/** Leases that are not renewed, or late. */
function hasFixedLeases({ processes }: Scenario): boolean {
  const isFixed = ({ autoExtend, blocksMs, extend, detach }: Operation): boolean =>
    autoExtend === false || blocksMs !== undefined || extend !== undefined || detach !== undefined;
  return processes.some(({ callers }) =>
    callers.some(({ operations }) => operations.some(isFixed)),
  );
}

/** Whether a server forgets all that was written last, guarded or not. */
export const losesData = (fault: Fault): boolean =>
  fault.kind === 'server-flushed' ||
  fault.kind === 'data-restored' ||
  fault.kind === 'fail-over' ||
  (fault.kind === 'server-restarted' && fault.data !== 'kept');

/** Whether a lock that is held may be granted to somebody else because of it. */
function forgets(fault: Fault, scenario: Scenario, done: readonly DoneFault[]): boolean {
  const { service } = scenario;
  switch (fault.kind) {
    case 'server-flushed':
      return !isGuarded(scenario, done);
    case 'data-restored':
      // "Every other loss of data": the guard's own key is older, too, and of the same run.
      return true;
    case 'foreign-value':
      return fault.at === 'main' || fault.at === 'holders';
    case 'server-restarted':
      // "Redis restarts without persistence: yes", "with `appendfsync everysec`: yes, for locks of the last second or so"
      return fault.data !== 'kept' && !isGuarded(scenario, done);
    case 'fail-over':
      // "With `ack` = all replicas there is no other": a fail-over keeps the lock.
      return service.replicas === undefined && service.restartGuard === undefined;
    case 'server-clock-set':
      // "clock of Redis set forward: yes"; of a minority of several masters: of a bare majority.
      return fault.byMs > 0;
    case 'key-lost':
    case 'force-released':
    case 'seen-released':
    case 'instance-released':
      return true;
    default:
      return false;
  }
}

/** "A server whose clock jumps forward is through with its quarantine early." */
const isGuarded = ({ service }: Scenario, done: readonly DoneFault[]): boolean =>
  service.restartGuard !== undefined && stepsForward(done) === 0;

const stepsForward = (done: readonly DoneFault[]): number =>
  done.filter(({ fault }) => fault.kind === 'server-clock-set' && fault.byMs > 0).length;

/** Whether it is a clock, and no more of them are set forward than may be. */
const isOfMinority = (fault: Fault, scenario: Scenario, done: readonly DoneFault[]): boolean =>
  fault.kind === 'server-clock-set' && stepsForward(done) <= minorityOf(scenario);

const minorityOf = ({ servers }: Scenario): number => Math.ceil(servers.length / 2) - 1;
