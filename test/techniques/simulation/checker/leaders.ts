import { nameOf } from '../../faults/grants.js';
import type { SimEvent } from '../history.js';
import type { Scenario } from '../scenario.js';
import type { DoneFault } from './losses.js';
import { stoodStillMs, type Facts } from './facts.js';
import { quietMs } from './liveness.js';
import { TRIPS_TO_THE_LINE } from './order.js';

/** By how much clocks may differ, of a time, and how much earlier timers come up. */
const DRIFT = 0.01;
const EARLY_MS = 10;

/** What servers that reply later than a majority are waited for. */
const LATECOMERS_MS = 260;

/** A notification at once comes in the same turn of the event loop. */
const AT_ONCE_MS = 1;

/** "Another one is elected within its `ttl` and 150 ms", of which `quietMs` allows for 50. */
const REPLACED_WITHIN_MS = 100;

/** "When this instance is a candidate again": "after 1 s"; if the work failed, "after 1 s, 2 s, … up to 60 s". */
const asideMs = (failures: number): number =>
  Math.min(1_000 * 2 ** Math.max(0, failures - 1), 60_000);

/** A time for which an instance is a candidate, and what happens to it. */
interface Term {
  readonly name: string;
  readonly client: string;
  readonly candidate: string;
  readonly key: string;
  readonly ttlMs: number;
  readonly rotateEveryMs: number | undefined;
  electedAt?: number;
  /** What was to end it first. */
  cause?: { readonly at: number; readonly reason: string };
  over?: Over;
  /** When its work has ended, and when the lead is free. */
  leftAt?: number;
  freeAt?: number;
}

type Over = SimEvent & { readonly type: 'term-closed' };

/** A call that waits for a key, of whatever kind. */
interface Wait {
  readonly client: string;
  readonly keys: readonly string[];
  readonly from: number;
  to: number;
}

/** Leaders that are not as docs/cron.md says. That there is one at a time, and that terms grow, is what other checks look at. */
export function leaderViolations(scenario: Scenario, facts: Facts): readonly string[] {
  const { events, killed, done } = facts;
  const terms = termsOf(events);
  if (terms.length === 0) return [];
  const elected = terms.filter(({ electedAt }) => electedAt !== undefined);
  const waits = waitsOf(events);
  const clockWasSet = done.some(({ fault }) => fault.kind === 'process-clock-set');
  return [
    ...elected.flatMap((term) => wrongEnds(term, killed)),
    ...(clockWasSet ? [] : soonAgain(elected)),
    ...elected.flatMap((term) => [
      ...(done.length === 0 ? wrongRotation(term, waits, { scenario, events }) : []),
      ...notReplaced(term, waits, { scenario, facts }),
    ]),
  ];
}

function termsOf(events: readonly SimEvent[]): readonly Term[] {
  const keys = new Map<string, string>();
  const terms = new Map<string, Term>();
  const ends = (at: number, reason: string, isMeant: (term: Term) => boolean): void => {
    for (const term of terms.values()) {
      if (!isMeant(term) || term.electedAt === undefined) continue;
      // A lock that is over by then was lost, whatever ends the term.
      const isFound = reason === 'lost' && term.over === undefined;
      if (term.cause === undefined || (isFound && at - term.cause.at <= AT_ONCE_MS))
        term.cause = { at, reason };
    }
  };
  for (const event of events) {
    const { at } = event;
    switch (event.type) {
      case 'ask':
        keys.set(nameOf(event), event.keys[0]!);
        break;
      case 'stands': {
        const { client, lead, candidate, ttlMs, rotateEveryMs } = event;
        const name = nameOf({ client, ask: lead });
        terms.set(name, {
          ...{ name, client, ttlMs, rotateEveryMs, key: keys.get(name)! },
          candidate: nameOf({ client, ask: candidate }),
        });
        break;
      }
      case 'granted':
      case 'releasing':
      case 'released': {
        const term = terms.get(nameOf(event));
        if (term !== undefined) term[WHEN[event.type]] = at;
        break;
      }
      case 'lost':
        ends(at, 'lost', ({ name }) => name === nameOf(event));
        break;
      case 'ends-term':
        ends(at, event.how, ({ name }) => name === nameOf({ ...event, ask: event.lead }));
        break;
      case 'stops': {
        const stopped = nameOf({ client: event.client, ask: event.candidate });
        ends(at, 'stopped', ({ candidate }) => candidate === stopped);
        break;
      }
      case 'closing':
        ends(at, 'stopped', ({ client }) => client === event.client);
        break;
      case 'term-closed': {
        const term = terms.get(nameOf({ client: event.client, ask: event.lead }))!;
        term.cause ??= { at, reason: 'rotated' };
        term.over = event;
        break;
      }
      default:
    }
  }
  return [...terms.values()];
}

const WHEN = { granted: 'electedAt', releasing: 'leftAt', released: 'freeAt' } as const;

/** "Holdfast calls `onLost` with the reason", once, when the term is over. */
function wrongEnds(
  { name, client, cause, over, electedAt, leftAt, freeAt, rotateEveryMs }: Term,
  killed: ReadonlySet<string>,
): readonly string[] {
  if (over === undefined || cause === undefined)
    return killed.has(client)
      ? []
      : [
          `lead: ${name} was not notified that its term was over (${cause?.reason ?? 'it never was'})`,
        ];
  const { reason, error, leads, at } = over;
  const lateMs = at - cause.at;
  return [
    ...(reason === cause.reason
      ? []
      : [
          `lead: ${name} was notified that its term was over, "${reason}", and it was "${cause.reason}"`,
        ]),
    ...(error === ERRORS[reason] ? [] : [`lead: ${name} ended with ${error} ("${reason}")`]),
    ...(lateMs <= AT_ONCE_MS
      ? []
      : [`lead: ${name} was notified ${lateMs.toFixed(1)} ms late that its term was over`]),
    ...(freeAt !== undefined && (leftAt === undefined || freeAt < leftAt)
      ? [`lead: ${name} was free before its work had ended`]
      : []),
    ...(leads ? [`lead: ${name} says that it leads, and its term is over`] : []),
    ...(reason === 'rotated' &&
    (rotateEveryMs === undefined || at - electedAt! < rotateEveryMs * (1 - DRIFT) - EARLY_MS)
      ? [`lead: ${name} rotated after ${(at - electedAt!).toFixed(1)} ms`]
      : []),
  ];
}

/** "A `LockLostError`: the lead was lost. An `AbortError`: this instance steps down." */
const ERRORS: Readonly<Record<string, string>> = {
  lost: 'LockLostError',
  failed: 'Error',
  ...{ 'stepped-down': 'AbortError', rotated: 'AbortError', stopped: 'AbortError' },
};

/** Candidates that were elected again before they may be. */
function soonAgain(elected: readonly Term[]): readonly string[] {
  const before = new Map<string, Term>();
  const failures = new Map<string, number>();
  return elected.flatMap((term) => {
    const { name, candidate, electedAt } = term;
    const last = before.get(candidate);
    before.set(candidate, term);
    if (last?.freeAt === undefined || last.over === undefined) return [];
    const { reason } = last.over;
    const failed = reason === 'failed' ? (failures.get(candidate) ?? 0) + 1 : 0;
    failures.set(candidate, failed);
    const afterMs = electedAt! - last.freeAt;
    return reason === 'lost' || afterMs >= asideMs(failed) * (1 - DRIFT) - EARLY_MS
      ? []
      : [`lead: ${name} was elected ${afterMs.toFixed(1)} ms after ${last.name} ("${reason}")`];
  });
}

function waitsOf(events: readonly SimEvent[]): readonly Wait[] {
  const open = new Map<string, Wait>();
  const all: Wait[] = [];
  for (const event of events) {
    if (event.type === 'ask' && event.waitMs > 0) {
      const { client, keys, at: from } = event;
      const wait = { client, keys, from, to: Infinity };
      open.set(nameOf(event), wait);
      all.push(wait);
    } else if ('ask' in event) {
      const wait = open.get(nameOf(event));
      if (wait !== undefined) wait.to = event.at;
      open.delete(nameOf(event));
    }
  }
  return all;
}

/**
 * "With `rotateEvery` a leader steps down if other instances wait": one that did not, although another process has waited all the while; or
 * did although nobody has.
 */
function wrongRotation(
  { name, client, key, electedAt, over, rotateEveryMs }: Term,
  waits: readonly Wait[],
  {
    scenario: { network },
    events,
  }: { readonly scenario: Scenario; readonly events: readonly SimEvent[] },
): readonly string[] {
  if (rotateEveryMs === undefined || over === undefined) return [];
  // Work may block its process, which looks later then.
  const stillMs = stoodStillMs(events, client, [electedAt!, over.at]);
  const tripMs = (network.latencyUs + network.jitterUs) / 1_000;
  const lookedAt = over.at - 10 * tripMs - LATECOMERS_MS;
  const isWanted = waits.some(
    ({ keys, from, to }) => keys.includes(key) && from < over.at + EARLY_MS && to > lookedAt,
  );
  if (over.reason === 'rotated' && !isWanted)
    return [`rotation: ${name} stepped down at ${over.at.toFixed(1)}, and nobody waited`];
  for (let looks = 1; ; looks += 1) {
    const from = electedAt! + looks * (rotateEveryMs * (1 - DRIFT) - EARLY_MS);
    const until =
      electedAt! +
      looks * (rotateEveryMs * (1 + DRIFT) + EARLY_MS + 10 * tripMs + LATECOMERS_MS) +
      stillMs;
    if (over.at <= until) return [];
    const inLineAt = from - TRIPS_TO_THE_LINE * tripMs - EARLY_MS;
    const other = waits.find(
      (wait) =>
        wait.client !== client &&
        // A process that stands still is not in line again when its key is lost.
        stoodStillMs(events, wait.client, [wait.from, until]) === 0 &&
        // A caller of several keys stands in the line of one of them at a time.
        wait.keys.length === 1 &&
        wait.keys.includes(key) &&
        wait.from < inLineAt &&
        wait.to > until,
    );
    if (other !== undefined)
      return [
        `rotation: ${name} led from ${electedAt!.toFixed(1)} to ${over.at.toFixed(1)}, and ${other.client} had waited since ${other.from.toFixed(1)}`,
      ];
  }
}

/**
 * "A leader that dies or freezes is replaced when its lease is over: within its `ttl` and 150 ms." Known where nothing else goes wrong until
 * then, and a candidate waits that nothing has happened to.
 */
function notReplaced(
  { name, client, key, ttlMs, electedAt, freeAt }: Term,
  waits: readonly Wait[],
  { scenario, facts }: { readonly scenario: Scenario; readonly facts: Facts },
): readonly string[] {
  const { events, done } = facts;
  if (scenario.service.restartGuard !== undefined) return [];
  const fault = done.find((each) => each.at > electedAt! && hits(each, client));
  if (fault === undefined || freeAt! < fault.at) return [];
  const untilMs = fault.at + ttlMs * (1 + DRIFT) + REPLACED_WITHIN_MS + quietMs(scenario);
  const before = done.filter((each) => each !== fault && each.at <= untilMs);
  if (before.some((each) => each.fault.kind !== 'process-killed')) return [];
  if (events.at(-1)!.at < untilMs) return [];
  if (fault.fault.kind === 'process-stands-still' && fault.healedAt <= untilMs) return [];
  const isReplaced = events.some(
    (event) =>
      event.type === 'granted' &&
      event.keys.includes(key) &&
      event.at > electedAt! &&
      event.at <= untilMs,
  );
  if (isReplaced) return [];
  // "A process that is frozen in line delays the others by one claim."
  const stands = ({ from, to, ...wait }: Wait): boolean =>
    wait.client === client && wait.keys.includes(key) && from <= fault.at && to >= fault.at;
  if (fault.fault.kind !== 'process-killed' && waits.some(stands)) return [];
  const inLineAt = fault.at - quietMs(scenario);
  const other = waits.find(
    (wait) =>
      wait.client !== client &&
      wait.keys.length === 1 &&
      wait.keys[0] === key &&
      wait.from < inLineAt &&
      wait.to > untilMs &&
      !before.some((each) => hits(each, wait.client)) &&
      stoodStillMs(events, wait.client, [wait.from, untilMs]) === 0,
  );
  return other === undefined
    ? []
    : [
        `replaced: ${name} could not lead from ${fault.at.toFixed(1)} on, and nobody led ${(untilMs - fault.at).toFixed(0)} ms later, although ${other.client} waited`,
      ];
}

const HITS: ReadonlySet<string> = new Set([
  ...['process-killed', 'process-vanished', 'process-stands-still'],
]);

/** Whether a fault ends or stops the process of that name: of its machine, another one may run by now. */
const hits = ({ fault }: DoneFault, client: string): boolean =>
  HITS.has(fault.kind) &&
  'process' in fault &&
  client.split('.')[0] === `p${String(fault.process)}`;
