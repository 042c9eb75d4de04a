import type {
  FoundHolder,
  FoundInstance,
  FoundKey,
  FoundOnce,
  InstanceRecord,
  RecordedHold,
} from '../../admin-store.js';

/** Every client that may write to the store can write any value: a value of another kind is left out. */

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const isText = (value: unknown): value is string => typeof value === 'string';

const isMissingOrText = (value: unknown): value is string | undefined =>
  value === undefined || isText(value);

/** Half of what a `Date` can have. */
const LATEST_MS = 4e15;

const isMs = (value: unknown): value is number =>
  typeof value === 'number' && Math.abs(value) <= LATEST_MS;

/** A whole number from 1 on. */
export function countIn(value: unknown): number | undefined {
  const count = Number(value);
  return Number.isSafeInteger(count) && count > 0 ? count : undefined;
}

/** A moment of a script, which counts µs since 1970, in ms. */
export function momentIn(us: number | undefined): number | undefined {
  const ms = (us ?? NaN) / 1_000;
  return ms > 0 && isMs(ms) ? ms : undefined;
}

/** The record of the instance with this id, and for how long it may still live. */
export function instanceIn(id: string, text: unknown, leftMs: number): FoundInstance | undefined {
  const record = isText(text) ? objectIn(text) : undefined;
  if (record?.id !== id) return undefined;
  const { application, host, version, service, startedAtMs, address, holds, lifeMs } = record;
  // Operators copy it into commands: "kill -9 -1" ends all processes.
  const pid = countIn(record.pid);
  const protocol = countIn(record.protocol);
  if (!isText(application) || !isText(host) || pid === undefined) return undefined;
  if (!isMissingOrText(version) || !isMissingOrText(service)) return undefined;
  if (!isMs(startedAtMs) || !isMs(lifeMs) || leftMs < 0) return undefined;
  if (address !== undefined && !isAddress(address)) return undefined;
  const known: InstanceRecord = { id, application, host, pid, version, service, startedAtMs };
  const isRight = Array.isArray(holds) && holds.every(isHold);
  const seenMsAgo = Math.max(0, lifeMs - leftMs);
  return { ...known, protocol, address, holds: isRight ? holds : undefined, seenMsAgo };
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = parsed(text);
  return isObject(value) ? value : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** One for each node. */
function isAddress(address: unknown): address is string {
  const places = isText(address) ? parsed(address) : undefined;
  return Array.isArray(places) && places.every(isText);
}

const isHold = (hold: unknown): hold is RecordedHold =>
  isObject(hold) &&
  isText(hold.leaseId) &&
  [hold.method, hold.template, hold.place].every(isMissingOrText) &&
  (hold.sinceMs === undefined || isMs(hold.sinceMs)) &&
  (hold.isLeading === undefined || hold.isLeading === true);

const STATES: readonly unknown[] = ['running', 'failed', 'done', 'exhausted'];

/** The record of work that is to be done once. */
export function onceIn(
  [state, attempt, text]: readonly unknown[],
  remainingMs: number,
): FoundOnce | undefined {
  const attempts = countIn(attempt);
  if (!isText(state) || !STATES.includes(state) || attempts === undefined) return undefined;
  return { state, attempts, text: isText(text) ? text : undefined, remainingMs };
}

export const numberIn = (value: unknown): number => Number(value ?? -2);

export const endless = (pttl: number): number => (pttl < 0 ? Infinity : pttl);

export const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const textsIn = (value: unknown): readonly string[] => listIn(value).filter(isText);

export function pairsIn(value: unknown): readonly (readonly [string, number])[] {
  const flat = listIn(value);
  return flat.flatMap((member, i) =>
    i % 2 === 0 && isText(member) ? [[member, Number(flat[i + 1])] as const] : [],
  );
}

/** The places of a holder that takes several, as `holders.lua` writes it. */
const SHADOW = '+';

/** The longest of them ends when the set does; the others by so much earlier. */
export function holdersIn(
  tokens: readonly (readonly [string, number])[],
  longestMs: number,
): readonly FoundHolder[] {
  const last = tokens.at(-1)?.[1] ?? 0;
  return tokens
    .filter(([token]) => !token.startsWith(SHADOW))
    .map(([token, end]) => ({ token, remainingMs: Math.round(longestMs - (last - end) / 1_000) }))
    .filter(({ remainingMs }) => remainingMs > 0);
}

/** As `places.lua` writes it. */
export function placeIn(member: string, ticket: number): FoundKey['line'] {
  const [, token, channel] = /^(\S+) \d+ ([^\n]+)/.exec(member) ?? [];
  if (token === undefined || channel === undefined) return [];
  return [{ token, channel, sinceMs: momentIn(ticket) }];
}
