import type { BeginOutcome, FinishOutcome } from '../../once-store.js';
import { quorumOf } from '../poll.js';
import { unavailable } from '../votes.js';

interface Named {
  readonly name: string;
  readonly isSilent: boolean;
}

/** Answers of nodes, in their order; `undefined` of those that have not answered. */
type Answers<Answer> = readonly (Answer | undefined)[];

/** What has become of a try to begin; `undefined` while the answers that are awaited can still change it. */
export function beginOutcome(
  votes: Answers<BeginOutcome>,
  awaited: number,
  nodes: readonly Named[],
): BeginOutcome | undefined {
  const quorum = quorumOf(votes.length);
  // Whoever marked it had done it; a majority of the others may have been deaf.
  const done = votes.find((vote) => vote?.status === 'done');
  if (done !== undefined) return done;
  const begun = votes.filter((vote) => vote?.status === 'begun');
  const exhausted = votes.find((vote) => vote?.status === 'exhausted');
  if (begun.length + votes.filter((vote) => vote?.status === 'exhausted').length >= quorum) {
    const attempt = Math.max(...begun.map((vote) => vote.attempt));
    return exhausted ?? { status: 'begun', attempt };
  }
  const lost = votes.filter((vote) => vote?.status === 'lost');
  if (lost.length > votes.length - quorum) {
    return { status: 'lost', attempts: Math.max(...lost.map((vote) => vote.attempts)) };
  }
  return awaited > 0 ? undefined : unavailable(votes, nodes);
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
