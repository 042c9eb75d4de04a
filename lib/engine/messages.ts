import type { Intervention } from '../errors.js';
import type { Contended } from '../queue/contention.js';

/** A question that one service asks another. */
export type Question = { readonly about: 'key'; readonly key: string } | { readonly about: 'hot' };

/** Where a call comes from, as far as its own process knows. */
export interface CallFacts {
  readonly method?: string | undefined;
  readonly template?: string | undefined;
  /** File and line of a call by hand, where it was recorded. */
  readonly place?: string | undefined;
}

/** What a service reports of one lock that it holds. */
export interface HoldFacts extends CallFacts {
  /** The tail of its owner token: enough to distinguish it from others. */
  readonly tail: string;
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
    }
  | {
      readonly type: 'released';
      readonly tokens: readonly string[];
      readonly intervention: Intervention;
    };

const isText = (value: unknown): value is string => typeof value === 'string';

const isNumber = (value: unknown): value is number => Number.isFinite(value);

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
  const { type, id, to, from, reply, question, answer, tokens, intervention } = message;
  if (type === 'ask') return isText(id) && isText(to) && isText(reply) && isQuestion(question);
  if (type === 'answer') return isText(id) && isText(from) && isAnswer(answer);
  return (
    type === 'released' &&
    isListOf(tokens, isText) &&
    isObject(intervention) &&
    isText(intervention.by) &&
    isText(intervention.reason)
  );
}

const isQuestion = (question: unknown): boolean =>
  isObject(question) &&
  (question.about === 'hot' || (question.about === 'key' && isText(question.key)));

const isAnswer = (answer: unknown): boolean =>
  isObject(answer) &&
  isMissingOr(answer.holds, (each) => isListOf(each, isHold)) &&
  isMissingOr(answer.waits, (each) => isListOf(each, isWait)) &&
  isMissingOr(answer.hot, (each) => isListOf(each, isContended));

const isHold = (hold: unknown): boolean =>
  isCall(hold) && isText(hold.tail) && isNumber(hold.heldMs) && isNumber(hold.fencingToken);

const isWait = (wait: unknown): boolean =>
  isCall(wait) && isNumber(wait.waitedMs) && isListOf(wait.keys, isText);

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
