import { nameOf } from '../../faults/grants.js';
import type { SimEvent } from '../history.js';
import type { Scenario } from '../scenario.js';
import { isCalm, type Facts } from './facts.js';
import { TRIPS_TO_THE_LINE } from './order.js';

/** Between two looks at a key that was refused, at the most, and for timers that are late. */
const LOOKS_EVERY_MS = 600;

/** At the end of a shutdown, a process does not reply. So long its reply is waited for, beside `replaceWait`. */
const NO_REPLY_MS = 1_500;

const SLACK_MS = 20;

/** A call for one key. */
interface Call {
  readonly name: string;
  readonly key: string;
  readonly askedAt: number;
  readonly replaceWaitMs: number | undefined;
  grantedAt?: number;
  lost?: { readonly at: number; readonly reason: string };
  /** When its work has ended. */
  leftAt?: number;
  /** When it has heard, and whether it was refused. */
  answer?: { readonly at: number; readonly isRefusal: boolean };
  result?: string;
}

/** Calls with `onLocked: 'replace'` that are not as docs/internals/promises.md says, as long as nothing else is wrong. */
export function replaceViolations(scenario: Scenario, facts: Facts): readonly string[] {
  const calls = callsOf(facts.events);
  const newest = calls.filter(({ replaceWaitMs }) => replaceWaitMs !== undefined);
  if (newest.length === 0) return [];
  const { latencyUs, jitterUs } = scenario.network;
  const lateMs = (TRIPS_TO_THE_LINE * (latencyUs + jitterUs)) / 1_000 + 5;
  const closedAt = facts.events.flatMap(({ type, at }) => (type === 'closing' ? [at] : []));
  const hasClosed = ({ askedAt, answer }: Call): boolean =>
    closedAt.some((at) => at > askedAt - lateMs && at < (answer?.at ?? Infinity));
  return newest.flatMap((call) => {
    const others = calls.filter(({ key, name }) => key === call.key && name !== call.name);
    const until = call.answer?.at ?? Infinity;
    if (!isCalm(facts, call.askedAt, until)) return [];
    return [
      ...overtaken(call, others, lateMs),
      ...notReplaced(call, others),
      ...early(call, others),
      ...kept(call, others, { lateMs, hasClosed }),
    ];
  });
}

/** "The newest call wins": one that is granted after a newer one. */
const overtaken = (
  { name, key, askedAt, grantedAt }: Call,
  others: readonly Call[],
  lateMs: number,
) =>
  others
    .filter(
      (other) =>
        grantedAt !== undefined &&
        other.replaceWaitMs !== undefined &&
        other.askedAt > askedAt + lateMs &&
        (other.grantedAt ?? Infinity) < grantedAt,
    )
    .map((other) => `newest: ${name} was granted "${key}" after ${other.name}, which is newer`);

/** "The `signal` of the holder aborts", and "the call of the holder rejects with `LockLostError`". */
const notReplaced = ({ name, key, askedAt, grantedAt }: Call, others: readonly Call[]) =>
  others
    .filter(
      ({ grantedAt: heldFrom, leftAt = Infinity, lost, result }) =>
        grantedAt !== undefined &&
        (heldFrom ?? Infinity) < askedAt &&
        leftAt > grantedAt &&
        lost === undefined &&
        !(result === 'LockLostError' || result === 'false' || result === undefined),
    )
    .map(
      (holder) =>
        `newest: ${name} was granted "${key}", and ${holder.name} ended with ${holder.result!}`,
    );

/** "For how long the work of the holder may continue after its `signal` has aborted." */
const early = ({ name, key, grantedAt, replaceWaitMs = 0 }: Call, others: readonly Call[]) =>
  others
    .filter(
      ({ lost, leftAt }) =>
        grantedAt !== undefined &&
        lost?.reason === 'replaced' &&
        leftAt !== undefined &&
        lost.at < grantedAt &&
        leftAt > grantedAt &&
        grantedAt - lost.at < 0.99 * replaceWaitMs - SLACK_MS,
    )
    .map(
      (holder) =>
        `newest: ${name} was granted "${key}" ${(grantedAt! - holder.lost!.at).toFixed(0)} ms after ${holder.name} was told, whose work had not ended`,
    );

/** The newest call has the key when the work before it has ended, or after `replaceWait`. */
function kept(
  call: Call,
  others: readonly Call[],
  { lateMs, hasClosed }: { readonly lateMs: number; readonly hasClosed: (call: Call) => boolean },
): readonly string[] {
  const { name, key, askedAt, replaceWaitMs = 0, grantedAt, answer } = call;
  if (answer === undefined || (grantedAt === undefined && !answer.isRefusal)) return [];
  const isNewest = others.every(
    (other) =>
      other.replaceWaitMs === undefined || other.askedAt < askedAt || other.askedAt > answer.at,
  );
  if (!isNewest) return [];
  if (answer.isRefusal)
    return [`newest: ${name} was refused "${key}", although no newer call came`];
  const freeAt = others
    .filter((other) => (other.grantedAt ?? Infinity) < answer.at)
    .map(({ leftAt = Infinity, lost }) =>
      Math.min(leftAt, (lost?.at ?? Infinity) + replaceWaitMs, answer.at),
    );
  const sinceMs = answer.at - Math.max(askedAt, ...freeAt);
  const mostMs = LOOKS_EVERY_MS + (hasClosed(call) ? replaceWaitMs + NO_REPLY_MS : 0);
  return sinceMs > mostMs + lateMs
    ? [`newest: ${name} waited ${sinceMs.toFixed(0)} ms for "${key}", which no work held`]
    : [];
}

function callsOf(events: readonly SimEvent[]): readonly Call[] {
  const calls = new Map<string, Call>();
  for (const event of events) {
    if (!('ask' in event)) continue;
    const { at } = event;
    const call = calls.get(nameOf(event));
    if (event.type === 'ask') {
      const { keys, replaceWaitMs } = event;
      const name = nameOf(event);
      calls.set(name, { name, key: keys[0]!, askedAt: at, replaceWaitMs });
      continue;
    }
    if (call === undefined) continue;
    if (event.type === 'granted') call.grantedAt = at;
    if (event.type === 'lost') call.lost ??= { at, reason: event.reason };
    if (event.type === 'releasing') call.leftAt = at;
    if (event.type === 'released') call.result = event.result;
    if (event.type === 'granted' || event.type === 'failed' || event.type === 'refused')
      call.answer ??= { at, isRefusal: event.type === 'refused' };
  }
  return [...calls.values()];
}
