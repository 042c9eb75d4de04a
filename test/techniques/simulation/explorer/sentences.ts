import type { LockLossReason } from '../../../../lib/errors.js';
import type { Fact } from './facts.js';

/** The log of a world: what happened, in plain sentences. */

export interface Sentence {
  readonly atMs: number;
  readonly text: string;
  /** What a reader should not miss. */
  readonly isImportant: boolean;
}

/** Tokens are microseconds of the server's clock, so the first digits of all of them are the same. */
const SHOWN_DIGITS = 9;

export const shortToken = (token: number): string => `…${String(token).slice(-SHOWN_DIGITS)}`;

export const processName = (process: number): string => `p${String(process)}`;
export const nodeName = (node: number): string => `n${String(node)}`;

const LOST_BECAUSE: Partial<Readonly<Record<LockLossReason, string>>> = {
  expired: 'its lease is over',
  stolen: 'another process holds the key now',
  'released-elsewhere': 'the key is gone from Redis',
  'store-unavailable': 'no majority of the nodes answered in time',
};

export function sentencesOf(facts: readonly Fact[]): readonly Sentence[] {
  const said = new Map<number, string | undefined>();
  return facts.flatMap((fact) => {
    const text = textOf(fact);
    if (fact.type === 'says') {
      // It keeps the key for another time, and that is all.
      if (said.get(fact.node) === text) return [];
      said.set(fact.node, text);
    }
    return text === undefined ? [] : [{ atMs: fact.atMs, text, isImportant: isImportant(fact) }];
  });
}

const isImportant = (fact: Fact): boolean =>
  fact.type === 'lost' || fact.type === 'dies' || (fact.type === 'writes' && !fact.isAccepted);

function textOf(fact: Fact): string | undefined {
  const who = 'process' in fact ? processName(fact.process) : '';
  switch (fact.type) {
    case 'says':
      return `${nodeName(fact.node)}: ${saidOf(fact)}.`;
    case 'starts':
      return `${who} starts.`;
    case 'ready':
      return `${who} is connected.`;
    case 'asks':
      return `${who} asks for the lock${fact.mode === 'shared' ? ', shared' : ''}.`;
    case 'granted':
      return `${who} gets the lock, with fencing token ${shortToken(fact.token)}.`;
    case 'renewed':
      return `${who} renews its lease, until ${seconds(fact.untilMs)}.`;
    case 'jeopardy':
      return `${who} could not renew its lease, and may rely on it until ${seconds(fact.untilMs)}.`;
    case 'lost':
      return `${who} detects that it has lost the lock: ${LOST_BECAUSE[fact.reason] ?? fact.reason}.`;
    case 'ends work':
      return `${who} ends its work.`;
    case 'writes':
      return fact.isAccepted
        ? `The database accepts the write of ${who}, token ${shortToken(fact.token)}.`
        : `The database refuses the late write of ${who}: token ${shortToken(fact.token)} is smaller than ${shortToken(fact.newestToken)}.`;
    case 'released':
      return fact.isInTime
        ? `${who} has released the lock.`
        : `${who} has nothing to release any more.`;
    case 'refused':
    case 'failed':
      return `${who} does not get the lock: ${fact.why}.`;
    case 'pauses':
      return `${who} is paused for ${seconds(fact.forMs)}.`;
    case 'resumes':
      return `${who} continues.`;
    case 'dies':
      return `${who} is killed.`;
    case 'node stops':
      return `${nodeName(fact.node)} stops${fact.data === 'lost' ? ', and its data are lost' : ''}.`;
    case 'node starts':
      return `${nodeName(fact.node)} starts.`;
    case 'cut':
      return `The network between ${who} and ${nodeName(fact.node)} is cut.`;
    case 'joined':
      return `The network between ${who} and ${nodeName(fact.node)} is whole again.`;
    case 'network':
      return `A message takes ${String(fact.latencyMs)} ms, and ${String(Math.round(fact.lossRate * 100))} % of them are lost.`;
    default:
      return undefined;
  }
}

function saidOf({ holders, waiting }: Extract<Fact, { type: 'says' }>): string {
  const names = holders.map(processName).join(' and ');
  const held = `${names} ${holders.length > 1 ? 'hold' : 'holds'} the key`;
  const line = waiting === 0 ? '' : `, and ${String(waiting)} in line`;
  return `${names === '' ? 'the key is free' : held}${line}`;
}

export const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`;
