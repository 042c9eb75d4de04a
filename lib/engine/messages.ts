import type { Intervention } from '../errors.js';
import type { EndedLease, LeaseEnding } from '../lease/lease-keeper.js';
import type { CallFacts } from '../lease/lock-request.js';
import type { PastHold } from '../lease/past-holds.js';
import type { Contended } from '../queue/contention.js';
import type { Minute } from '../queue/last-hour.js';
import type { RecordedHold } from '../store/admin-store.js';

export type { CallFacts };

/** A question that one service asks another, or what it asks it to do. */
export type Question =
  | { readonly about: 'key'; readonly key: string }
  | { readonly about: 'hot' }
  | {
      readonly about: 'end';
      readonly leases: readonly EndedLease[];
      readonly intervention: Intervention;
      /** Given if a newer call replaces the holder: its work has that long to end, and the answer comes then. */
      readonly replaceWaitMs?: number | undefined;
    };

/** What a service reports of one lock that it holds. */
export interface HoldFacts extends RecordedHold {
  readonly heldMs: number;
  readonly fencingToken: number;
}

/** What a service reports of one caller that waits. */
export interface WaitFacts extends CallFacts {
  readonly waitedMs: number;
  readonly keys: readonly string[];
}

/** What a service reports of a lock that it held. */
export interface PastFacts extends CallFacts {
  readonly fencingToken: number;
  readonly heldMs: number;
  readonly endedMsAgo: number;
  readonly outcome: PastHold['outcome'];
  readonly reason?: string | undefined;
}

export interface Answer {
  readonly holds?: readonly HoldFacts[];
  readonly waits?: readonly WaitFacts[];
  /** The newest first. */
  readonly past?: readonly PastFacts[];
  /** What it did in the last hour. */
  readonly minutes?: readonly Minute[];
  /** How many callers wait now. */
  readonly callers?: number;
  readonly hot?: readonly Contended[];
  /** What became of the leases that were to end, in their order. */
  readonly endings?: readonly LeaseEnding[];
}

/** The messages between services. All are JSON objects; other messages are ignored. */
export type Message =
  | {
      readonly type: 'ask';
      readonly id: string;
      /** Which service is asked. */
      readonly to: string;
      /** Where the answer goes. */
      readonly reply: string;
      readonly question: Question;
    }
  | {
      readonly type: 'answer';
      readonly id: string;
      readonly from: string;
      readonly answer: Answer;
    };

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';

const isNumber: Check = (value) => Number.isFinite(value);

/** Far less than what a `Date` can have. */
const isMs: Check = (value) => isNumber(value) && Math.abs(value as number) <= 4e15;

const isDuration: Check = (value) => isMs(value) && (value as number) >= 0;

const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;

const oneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);

const either =
  (...checks: readonly Check[]): Check =>
  (value) =>
    checks.some((isRight) => isRight(value));

const listOf =
  (isRight: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(isRight);

const objectOf =
  (properties: Readonly<Record<string, Check>>): Check =>
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(properties).every(([name, isRight]) =>
      isRight((value as Readonly<Record<string, unknown>>)[name]),
    );

const maybe = (isRight: Check): Check => either(oneOf(undefined), isRight);

const ENDINGS = ['ended', 'passed-on', 'unknown'] satisfies LeaseEnding[];

const CALL = { method: maybe(isText), template: maybe(isText), place: maybe(isText) };

const isQuestion = either(
  objectOf({ about: oneOf('hot') }),
  objectOf({ about: oneOf('key'), key: isText }),
  objectOf({
    about: oneOf('end'),
    leases: listOf(objectOf({ key: isText, digest: isText, fencingToken: maybe(isNumber) })),
    intervention: objectOf({ by: isText, reason: isText }),
    replaceWaitMs: maybe(isMs),
  }),
);

const isHold = objectOf({
  ...{ ...CALL, leaseId: isText, heldMs: isMs, fencingToken: isNumber },
  ...{ sinceMs: maybe(isMs), isLeading: maybe(oneOf(true)) },
});

const isWait = objectOf({ ...CALL, waitedMs: isMs, keys: listOf(isText) });

const isContended = objectOf({
  ...{ key: isText, waitedMs: isDuration, waits: isCount, refusals: isCount },
  ...{ waiting: maybe(isCount), longestMs: maybe(isDuration) },
});

const OUTCOMES = ['released', 'detached', 'lost'] satisfies PastHold['outcome'][];

const isPast = objectOf({
  ...{ ...CALL, fencingToken: isNumber, heldMs: isMs, endedMsAgo: isMs },
  ...{ outcome: oneOf(...OUTCOMES), reason: maybe(isText) },
});

const isMinute = objectOf({ minute: isCount, held: isCount, waiting: isCount, refusals: isCount });

const isAnswer = objectOf({
  holds: maybe(listOf(isHold)),
  waits: maybe(listOf(isWait)),
  past: maybe(listOf(isPast)),
  minutes: maybe(listOf(isMinute)),
  callers: maybe(isCount),
  hot: maybe(listOf(isContended)),
  endings: maybe(listOf(oneOf(...ENDINGS))),
});

const isMessage = either(
  objectOf({ type: oneOf('ask'), id: isText, to: isText, reply: isText, question: isQuestion }),
  objectOf({ type: oneOf('answer'), id: isText, from: isText, answer: isAnswer }),
);

/** In characters. An answer that names the most callers and the longest keys is shorter. */
const LONGEST = 1_000_000;

/** Every client that may publish can send any text. */
export function parseMessage(text: string): Message | undefined {
  if (text.length > LONGEST) return undefined;
  try {
    const message: unknown = JSON.parse(text);
    return isMessage(message) ? (message as Message) : undefined;
  } catch {
    return undefined;
  }
}
