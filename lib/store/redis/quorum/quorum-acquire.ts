import type { AcquireOutcome, AcquireRequest, Granted, Unavailable } from '../../lock-store.js';
import { raiseFences, type AskedLock } from '../node/acquire.js';
import { releaseAt } from '../node/release.js';
import type { Vote } from '../scripts/acquire.js';
import { poll, quorumOf } from './poll.js';
import type { Standing, StandingLeases } from './standing-leases.js';
import type { Voter } from './voter.js';
import { acquireOutcome, heldAtFirst, unavailable } from './votes.js';

/**
 * By how much a proposed fencing token is ahead of the clocks of all nodes. So each of them accepts it, even if the
 * request takes longer than the one before. For that time, and the time of the request, the clocks do not hold a token
 * up: if every fence is lost meanwhile, a smaller one may follow.
 */
const PROPOSAL_SLACK_US = 5_000;

/** Takes locks on a majority of the voters, with one fencing token. */
export class QuorumAcquire {
  readonly #voters: readonly Voter[];
  readonly #quorum: number;
  readonly #standing: StandingLeases;

  constructor(voters: readonly Voter[], standing: StandingLeases) {
    this.#voters = voters;
    this.#quorum = quorumOf(voters.length);
    this.#standing = standing;
  }

  /** @param sentAt by the monotonic clock */
  async acquire(request: AcquireRequest, sentAt: number): Promise<AcquireOutcome> {
    const asked: AskedLock = { ...request, proposal: this.#proposal() };
    const first = await this.#askFirst(asked);
    if (first?.vote.status === 'held') return heldAtFirst(first.vote);
    const { outcome, answers, complete } = await poll(
      this.#voters,
      this.#quorum,
      (voter) => (voter === first?.voter ? Promise.resolve(first.vote) : voter.acquire(asked)),
      (votes, awaited) => acquireOutcome(votes, awaited, this.#voters),
    );
    // After an outage the caller removes what may be left on any of the nodes.
    if (outcome.status === 'held') await this.#withdraw(request, answers);
    if (outcome.status !== 'granted') return outcome;
    const standing: Standing = {
      lease: request,
      lastToken: outcome.fencingToken,
      untilMs: sentAt + request.ttlMs,
      askedAt: sentAt,
      state: 'held',
      isBrought: false,
    };
    this.#standing.add(standing);
    void complete.then((votes) => this.#complete(request, standing, votes));
    const agreed = await this.#agree(request, outcome, answers);
    if (agreed.status !== 'granted') this.#standing.end(request.token);
    return agreed;
  }

  /**
   * After a split vote one node is asked before the others. All callers that try again ask the same one, and only the
   * caller that has its vote asks for more.
   */
  async #askFirst(
    asked: AskedLock,
  ): Promise<{ readonly voter: Voter; readonly vote: Vote } | undefined> {
    if ((asked.splits ?? 0) === 0) return undefined;
    const voter = this.#voters.find(({ isThere, isSilent }) => isThere && !isSilent);
    return voter && { voter, vote: await voter.acquire(asked) };
  }

  /** A fencing token that all nodes can take: ahead of every clock, so that none of them has to go beyond it. */
  #proposal(): number {
    const clocks = this.#voters.map(({ clock }) => clock.onArrivalUs() ?? 0);
    const highest = Math.max(...clocks);
    return highest > 0 ? Math.ceil(highest + PROPOSAL_SLACK_US) : 0;
  }

  /**
   * Every majority has a node in common with this one: the largest token counts once a majority has it, because none of those nodes
   * will ever give a smaller one. It is larger than that of each holder before: one of the votes is of a node that had
   * granted the key to that holder.
   */
  async #agree(
    request: AcquireRequest,
    granted: Granted,
    votes: readonly (Vote | undefined)[],
  ): Promise<AcquireOutcome> {
    const { fencingToken } = granted;
    const tokens = votes.map((vote) =>
      vote?.status === 'granted' ? vote.fencingToken : undefined,
    );
    const missing = this.#quorum - tokens.filter((token) => token === fencingToken).length;
    if (missing <= 0) return granted;
    const lower = this.#voters.filter((_, index) => (tokens[index] ?? Infinity) < fencingToken);
    const { outcome } = await poll<Voter, Unavailable | 'raised', AcquireOutcome>(
      lower,
      missing,
      async (voter) => (await raiseFences(voter, request.keys, request, fencingToken)) ?? 'raised',
      (answers, awaited) => {
        const raised = answers.filter((answer) => answer === 'raised').length;
        if (raised >= missing) return granted;
        if (raised + awaited >= missing) return undefined;
        const failures = this.#voters.map((voter) => {
          const answer = answers[lower.indexOf(voter)];
          return answer === 'raised' ? undefined : answer;
        });
        // The lease was granted before: there is something to remove.
        const { sent: _, ...outage } = unavailable(failures, this.#voters);
        return outage;
      },
    );
    return outcome;
  }

  /**
   * After a majority has granted a lease, it leaves the lines at the nodes that refused it. It should also not stay on
   * a bare majority: the loss of one more node would end it. These nodes may have refused it for a vote that was
   * returned since, or may have been unreachable for a moment.
   */
  async #complete(
    request: AcquireRequest,
    standing: Standing,
    votes: readonly Vote[],
  ): Promise<void> {
    const { line: leaves } = request;
    if (leaves !== undefined) {
      // Only once: a later try could remove what is brought there meanwhile.
      const refused = this.#voters.filter((_, index) => votes[index]?.status === 'held');
      await Promise.all(refused.map((voter) => releaseAt(voter, request, { leaves })));
    }
    this.#voters.forEach((voter, index) => {
      if (votes[index]?.status !== 'granted') voter.bring(standing);
    });
  }

  /** Takes votes back that were not enough. What did not answer may have voted, or may yet. */
  async #withdraw(request: AcquireRequest, votes: readonly (Vote | undefined)[]): Promise<void> {
    await Promise.all(
      this.#voters.map(async (voter, index) => {
        const vote = votes[index];
        if (vote?.status === 'held') return;
        // No caller has to be notified: a caller that this vote refused knows that it was no majority, and asks again.
        const isGone =
          vote?.status === 'granted' &&
          (await releaseAt(voter, request, { wakes: 'nobody', lastToken: vote.fencingToken }))
            .status !== 'unavailable';
        const wasNeverSent = vote?.status === 'unavailable' && vote.sent === false;
        if (!isGone && !wasNeverSent) voter.remove(request);
      }),
    );
  }
}
