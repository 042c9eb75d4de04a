import type { BeginOutcome, FinishOutcome } from '../../once-store.js';
import { quorumOf } from './poll.js';
import { unavailable } from './votes.js';
import type { BeginVote, NodeEnd } from '../node/node-once.js';

interface Named {
  readonly name: string;
  readonly isSilent: boolean;
}

/** Answers of nodes, in their order; `undefined` of those that have not answered. */
type Answers<Answer> = readonly (Answer | undefined)[];

/** What the votes of the nodes mean for a try to begin. */
export type BeginDecision =
  | {
      readonly status: 'begun';
      readonly attempt: number;
      readonly lastError?: string | undefined;
    }
  | {
      readonly status: 'over';
      readonly end: NodeEnd;
      /**
       * `'known'`: a majority knows it. Otherwise it is not certain that it stays, and a majority has to accept it
       * before any caller is notified of it. `'to-adopt'`: as the caller's own, because a majority has promised to
       * accept nothing older. `'to-complete'`: as its owner's.
       */
      readonly standing: 'known' | 'to-adopt' | 'to-complete';
    }
  | Exclude<BeginOutcome, { readonly status: 'begun' | 'done' | 'exhausted' }>;

/**
 * The end that counts, if the work is over: the one that was accepted with the largest fence that any node knows. A
 * majority confirms an attempt before it works (`keep`), and an end before a caller is notified of it. So a majority of
 * votes names the fence of every attempt that has worked. A node that missed its begin, and believed the attempt before
 * it, is outvoted.
 */
export function endThatCounts(votes: Answers<BeginVote>): NodeEnd | undefined {
  const largest = Math.max(...votes.map((vote) => (vote && 'sure' in vote ? vote.sure : -1)));
  const ends = votes.filter(isEnd).filter(({ sure }) => sure === largest);
  return ends.find(({ status }) => status === 'done') ?? ends[0];
}

/** What has become of a try to begin; `undefined` while the answers that are awaited can still change it. */
export function beginDecision(
  votes: Answers<BeginVote>,
  awaited: number,
  nodes: readonly Named[],
): BeginDecision | undefined {
  const quorum = quorumOf(votes.length);
  const end = endThatCounts(votes);
  const promises = votes.filter((vote) => vote?.status === 'begun' || hasPromised(vote));
  const lost = votes.filter((vote) => vote?.status === 'lost');

  if (end !== undefined) {
    const same = votes.filter((vote) => vote?.status === end.status && vote.sure === end.sure);
    if (same.length >= quorum) return { status: 'over', end, standing: 'known' };
    if (awaited > 0) return undefined;
    if (promises.length >= quorum) return { status: 'over', end, standing: 'to-adopt' };
    const answered = votes.filter((vote) => vote !== undefined && vote.status !== 'unavailable');
    if (answered.length >= quorum) return { status: 'over', end, standing: 'to-complete' };
    return unavailable(votes, nodes);
  }
  if (promises.length >= quorum) {
    const numbers = promises.map((vote) => (isEnd(vote) ? vote.attempts + 1 : vote.attempt));
    const attempt = Math.max(...numbers);
    const latest = promises[numbers.indexOf(attempt)];
    return { status: 'begun', attempt, ...(latest?.status === 'begun' && errorOf(latest)) };
  }
  // One of those that are awaited may know that the work is over.
  if (awaited > 0) return undefined;
  if (lost.length > votes.length - quorum)
    return { status: 'lost', attempts: Math.max(...lost.map((vote) => vote.attempts)) };
  return unavailable(votes, nodes);
}

/** What has become of the end of an attempt; `undefined` while the answers that are awaited can still change it. */
export function finishOutcome(
  votes: Answers<FinishOutcome>,
  awaited: number,
  nodes: readonly Named[],
): FinishOutcome | undefined {
  const quorum = quorumOf(votes.length);
  const count = (status: FinishOutcome['status']): number =>
    votes.filter((vote) => vote?.status === status).length;
  if (count('accepted') >= quorum) return { status: 'accepted' };
  if (count('superseded') > votes.length - quorum) return { status: 'superseded' };
  return awaited > 0 ? undefined : unavailable(votes, nodes);
}

const isEnd = (vote: BeginVote | undefined): vote is NodeEnd =>
  vote?.status === 'done' || vote?.status === 'exhausted';

const hasPromised = (vote: BeginVote | undefined): vote is NodeEnd =>
  isEnd(vote) && vote.hasPromised;

const errorOf = ({ lastError }: BeginVote & { readonly status: 'begun' }) =>
  lastError === undefined ? {} : { lastError };
