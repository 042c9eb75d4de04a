import type { NodeFailure } from '../../../errors.js';
import type { FoundHolder, FoundKey } from '../../admin-store.js';
import type {
  AcquireOutcome,
  ExtendOutcome,
  Held,
  ReleaseOutcome,
  Unavailable,
} from '../../lock-store.js';
import { quorumOf } from './poll.js';
import type { RenewalVote } from '../node/extend.js';
import type { Vote } from '../scripts/acquire.js';

interface Named {
  readonly name: string;
  /** The node owes answers whose time is up, so that it may not have been waited for. */
  readonly isSilent: boolean;
}

type Answer = Vote | RenewalVote | ReleaseOutcome;

/** Answers of nodes, in their order; `undefined` of those that have not answered. */
type Answers<Answer> = readonly (Answer | undefined)[];

/**
 * When all callers asked at once and none got a majority, a caller that cannot wait gets this many ms as the time to
 * try again.
 */
const CONTENDED_MS = 100;

/** What has become of a request, as far as the votes say; `undefined` while those that are awaited can still change it. */
export function acquireOutcome(
  votes: Answers<Vote>,
  awaited: number,
  nodes: readonly Named[],
): AcquireOutcome | undefined {
  const quorum = quorumOf(votes.length);
  const mostMissing = votes.length - quorum;
  const yes = votes.filter((vote) => vote?.status === 'granted');
  if (yes.length >= quorum) {
    // The largest counts, and is then written to a majority.
    const fencingToken = Math.max(...yes.map((vote) => vote.fencingToken));
    const othersWait = yes.some((vote) => vote.othersWait);
    // Any of these servers may grant the key next.
    const isFromClock = yes.every((vote) => vote.isFromClock);
    const isPlain = yes.every((vote) => vote.isPlain);
    return { status: 'granted', fencingToken, isFromClock, isPlain, othersWait };
  }
  const failed = votes.filter((vote) => vote?.status === 'unavailable').length;
  const leader = leaderOf(votes);
  const certain = leader !== undefined && leader.votes >= quorum;
  const lost = yes.length + awaited < quorum;
  // Votes that are not heard, awaited or not, may be what makes the difference between a lock that is held and an outage.
  const unknown = votes.filter((vote) => vote === undefined).length + failed;
  // No caller gets a majority until these are deleted, whether or not they belong to one holder.
  const endless = votes.filter((vote) => vote?.status === 'held' && isEndless(vote));
  const isBlocked = endless.length > mostMissing;
  const decided = certain || isBlocked || failed > mostMissing || (lost && unknown <= mostMissing);
  if (!decided && awaited > 0) return undefined;

  if (certain) return { ...held(votes, leader.key, quorum), holder: leader.holder };
  if (isBlocked && endless[0]?.status === 'held') return held(votes, endless[0].key, quorum);
  if (unknown > mostMissing || leader === undefined) return unavailable(votes, nodes);
  // One token may have a majority, together with unknown votes, or none has.
  if (leader.votes + unknown >= quorum)
    return { ...held(votes, leader.key, quorum), contended: true };
  return { ...askAgainSoon(leader.key), contended: true };
}

/** A lock without TTL, of other software. */
const isEndless = ({ remainingMs }: { readonly remainingMs: number }): boolean =>
  remainingMs === Infinity;

/** What is seen soon: whether another caller gets a majority, or none does. */
const askAgainSoon = (key: string, remainingMs = CONTENDED_MS): Held => ({
  ...{ status: 'held', key, remainingMs, checkAgainMs: CONTENDED_MS },
});

/** Refused by the node that was asked first. */
export const heldAtFirst = ({ key, remainingMs }: Vote & { readonly status: 'held' }): Held =>
  askAgainSoon(key, Math.max(remainingMs, CONTENDED_MS));

interface Leader {
  readonly key: string;
  readonly holder: string;
  readonly votes: number;
}

/** Whom most of the refusals name. */
function leaderOf(votes: Answers<Vote>): Leader | undefined {
  const counts = new Map<string, Leader & { votes: number }>();
  for (const vote of votes) {
    if (vote?.status !== 'held') continue;
    const id = `${vote.key}\0${vote.holder}`;
    const count = counts.get(id) ?? { key: vote.key, holder: vote.holder, votes: 0 };
    count.votes += 1;
    counts.set(id, count);
  }
  return [...counts.values()].sort((a, b) => b.votes - a.votes)[0];
}

/** The lock may be free when a majority of the nodes is: not at the end of the longest lease, which may be a vote that came to nothing. */
function held(votes: Answers<Vote>, key: string, quorum: number): Held {
  const atQuorum = (timeOf: (vote: Vote & { readonly status: 'held' }) => number): number =>
    votes
      .map((vote) => {
        if (vote?.status === 'granted') return 0;
        return vote?.status === 'held' ? timeOf(vote) : Infinity;
      })
      .sort((a, b) => a - b)[quorum - 1] ?? Infinity;
  return {
    status: 'held',
    key,
    remainingMs: atQuorum(({ remainingMs }) => remainingMs),
    checkAgainMs: atQuorum(({ checkAgainMs }) => checkAgainMs),
  };
}

/**
 * Whether a majority says yes, or enough nodes say no that none can. One stray vote decides nothing, and a node that does not reply proves
 * nothing. `undefined` while the answers that are awaited can still change it.
 */
function tally<Status extends string>(
  answers: Answers<Answer>,
  awaited: number,
  nodes: readonly Named[],
  [yes, no]: readonly [Status, Status],
): Status | Unavailable | undefined {
  const quorum = quorumOf(answers.length);
  const mostMissing = answers.length - quorum;
  const count = (status: Status): number =>
    answers.filter((answer) => answer?.status === status).length;
  const [saidYes, saidNo] = [count(yes), count(no)];
  if (saidYes >= quorum) return yes;
  if (saidNo > mostMissing) return no;
  const isOpen = saidYes + awaited >= quorum || saidNo + awaited > mostMissing;
  return isOpen && awaited > 0 ? undefined : unavailable(answers, nodes);
}

/** What has become of a renewal. */
export function extendOutcome(
  votes: Answers<RenewalVote>,
  awaited: number,
  nodes: readonly Named[],
): ExtendOutcome | undefined {
  const status = tally(votes, awaited, nodes, ['extended', 'lost']);
  if (status !== 'lost') return status === 'extended' ? { status } : status;
  const isStolen = votes.some((vote) => vote?.status === 'lost' && vote.reason === 'stolen');
  return { status, reason: isStolen ? 'stolen' : 'released-elsewhere' };
}

/** What has become of a release. */
export function releaseOutcome(
  answers: Answers<ReleaseOutcome>,
  awaited: number,
  nodes: readonly Named[],
): ReleaseOutcome | undefined {
  const status = tally(answers, awaited, nodes, ['released', 'not-held']);
  if (typeof status === 'string') return { status };
  // The error names all nodes that have not released it.
  return awaited > 0 ? undefined : status;
}

/**
 * Returns what the nodes know of a key. At least a majority has replied, and the others may have what these have. Each
 * node has a line of its own, in another order.
 *
 * @param nodes how many there are
 */
export function mergedKey(key: string, found: readonly FoundKey[], nodes: number): FoundKey {
  const [quorum, missing] = [quorumOf(nodes), nodes - found.length];
  const votes = new Map<string, FoundHolder[]>();
  for (const holder of found.flatMap(({ holders }) => holders))
    votes.set(holder.token, [...(votes.get(holder.token) ?? []), holder]);
  // With this many, no caller can have a majority, whether or not they belong to one holder.
  const isBlocked = [...votes.values()].flat().filter(isEndless).length + missing > nodes - quorum;
  const holders: FoundHolder[] = [];
  const strays: FoundHolder[] = [];
  for (const same of votes.values()) {
    const [longest, ...others] = same.sort((a, b) => b.remainingMs - a.remainingMs);
    if (longest === undefined) continue;
    const holds = same.length + missing >= quorum || (isBlocked && isEndless(longest));
    // The lease ends when it has ended on as many nodes as leave it no majority.
    (holds ? holders : strays).push(others[quorum - 2] ?? longest);
  }
  const places = new Map(found.flatMap(({ line }) => line).map((place) => [place.token, place]));
  const fencingToken = Math.max(...found.map((each) => each.fencingToken ?? 0)) || undefined;
  return { ...found[0], key, holders, strays, fencingToken, line: [...places.values()] };
}

/** What happened at each node, of those that did not simply say yes. */
export function unavailable(answers: Answers<Answer>, nodes: readonly Named[]): Unavailable {
  const failures = answers.flatMap((answer) => (answer?.status === 'unavailable' ? [answer] : []));
  const fixed = failures.filter(({ transient }) => !transient).length;
  const nothingSent =
    failures.length === answers.length && failures.every(({ sent }) => sent === false);
  return {
    status: 'unavailable',
    nodes: answers.flatMap((answer, index) => whatHappened(answer, nodes[index])),
    transient: fixed <= answers.length - quorumOf(answers.length),
    ...(nothingSent && { sent: false }),
  };
}

function whatHappened(answer: Answer | undefined, node: Named | undefined): readonly NodeFailure[] {
  const { name = '', isSilent = false } = node ?? {};
  if (answer?.status === 'unavailable') return answer.nodes;
  if (answer?.status === 'held')
    return [{ node: name, kind: 'refused', message: 'held by another owner' }];
  if (answer !== undefined || !isSilent) return [];
  return [{ node: name, kind: 'timeout', message: 'has not answered earlier requests yet' }];
}
