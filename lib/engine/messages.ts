import type { Intervention } from '../errors.js';
import type { EndedLease, LeaseEnding } from '../lease/lease-keeper.js';
import type { Contended } from '../queue/contention.js';

/** A question that one service asks another, or what it asks it to do. */
export type Question =
  | { readonly about: 'key'; readonly key: string }
  | { readonly about: 'hot' }
  | {
      readonly about: 'end';
      readonly leases: readonly EndedLease[];
      readonly intervention: Intervention;
    };

/** Where a call comes from, as far as its own process knows. */
export interface CallFacts {
  readonly method?: string | undefined;
  readonly template?: string | undefined;
  /** File and line of a call by hand, where it was recorded. */
  readonly place?: string | undefined;
}

/** What a service reports of one lock that it holds. */
export interface HoldFacts extends CallFacts {
  readonly leaseId: string;
  readonly heldMs: number;
  readonly fencingToken: number;
}

/** What a service reports of one caller that waits. */
export interface WaitFacts extends CallFacts {
  readonly waitedMs: number;
  readonly keys: readonly string[];
}

export interface Answer {
  readonly holds?: readonly HoldFacts[];
  readonly waits?: readonly WaitFacts[];
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

const isText = (value: unknown): value is string => typeof value === 'string';

const isNumber = (value: unknown): value is number => Number.isFinite(value);

/** Far less than what a `Date` can have. */
const isMs = (value: unknown): boolean => isNumber(value) && Math.abs(value) <= 4e15;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Every client that may publish can send any text. */
export function parseMessage(text: string): Message | undefined {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isObject(message) && isMessage(message) ? (message as unknown as Message) : undefined;
}

function isMessage(message: Readonly<Record<string, unknown>>): boolean {
  const { type, id, to, from, reply, question, answer } = message;
  if (type === 'ask') return isText(id) && isText(to) && isText(reply) && isQuestion(question);
  return type === 'answer' && isText(id) && isText(from) && isAnswer(answer);
}

function isQuestion(question: unknown): boolean {
  if (!isObject(question)) return false;
  const { about, key, leases, intervention } = question;
  if (about === 'end') return isListOf(leases, isEndedLease) && isIntervention(intervention);
  return about === 'hot' || (about === 'key' && isText(key));
}

const isEndedLease = (lease: unknown): boolean =>
  isObject(lease) &&
  isText(lease.key) &&
  isText(lease.digest) &&
  isMissingOr(lease.fencingToken, isNumber);

const isIntervention = (intervention: unknown): boolean =>
  isObject(intervention) && isText(intervention.by) && isText(intervention.reason);

const ENDINGS: readonly unknown[] = ['ended', 'passed-on', 'unknown'] satisfies LeaseEnding[];

const isAnswer = (answer: unknown): boolean =>
  isObject(answer) &&
  isMissingOr(answer.holds, (each) => isListOf(each, isHold)) &&
  isMissingOr(answer.waits, (each) => isListOf(each, isWait)) &&
  isMissingOr(answer.hot, (each) => isListOf(each, isContended)) &&
  isMissingOr(answer.endings, (each) => isListOf(each, (ending) => ENDINGS.includes(ending)));

const isHold = (hold: unknown): boolean =>
  isCall(hold) && isText(hold.leaseId) && isMs(hold.heldMs) && isNumber(hold.fencingToken);

const isWait = (wait: unknown): boolean =>
  isCall(wait) && isMs(wait.waitedMs) && isListOf(wait.keys, isText);

const isContended = (counts: unknown): boolean =>
  isObject(counts) &&
  isText(counts.key) &&
  [counts.waitedMs, counts.waits, counts.refusals].every(isNumber);

const isCall = (call: unknown): call is Readonly<Record<string, unknown>> =>
  isObject(call) &&
  [call.method, call.template, call.place].every((each) => isMissingOr(each, isText));

const isMissingOr = (value: unknown, isRight: (value: unknown) => boolean): boolean =>
  value === undefined || isRight(value);

const isListOf = (value: unknown, isRight: (value: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isRight);
