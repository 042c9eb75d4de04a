import type { Runtime } from '../../../time/runtime.js';
import type { AcquireOutcome, AcquireRequest, Granted, Unavailable } from '../../lock-store.js';
import { acquireAt } from '../node/acquire.js';
import { releaseAt } from '../node/release.js';
import type { RedisNode } from '../node/redis-node.js';
import type { Vote } from '../scripts/acquire.js';
import { raiseFenceScript } from '../scripts/raise-fence.js';
import type { LeftOvers } from './left-overs.js';
import { poll, quorumOf } from './poll.js';
import type { Standing, StandingLeases } from './standing-leases.js';
import { acquireOutcome, heldAtFirst, unavailable } from './votes.js';

/**
 * By how much a proposed fencing token is ahead of the clocks of all nodes. So each of them accepts it, even if the
 * request takes longer than the one before. For that time, and the time of the request, the clocks do not hold a token
 * up: if every fence is lost meanwhile, a smaller one may follow.
 */
const PROPOSAL_SLACK_US = 5_000;

interface Dependencies {
  readonly nodes: readonly RedisNode[];
  readonly runtime: Runtime;
  readonly standing: StandingLeases;
  readonly leftOvers: LeftOvers;
}

/** Takes locks on a majority of the nodes, with one fencing token; with one node, there. */
export class QuorumAcquire {
  readonly #deps: Dependencies;
  readonly #nodes: readonly RedisNode[];
  readonly #quorum: number;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
    this.#nodes = dependencies.nodes;
    this.#quorum = quorumOf(dependencies.nodes.length);
  }

  acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    const [node, second] = this.#nodes;
    // By far the most frequent case: its vote decides, and there is nothing to agree on, to complete or to take back.
    return node !== undefined && second === undefined
      ? acquireAt(node, request, 0)
      : this.#acquireAtMany(request);
  }

  async #acquireAtMany(request: AcquireRequest): Promise<AcquireOutcome> {
    const { standing: leases, runtime } = this.#deps;
    const proposal = this.#proposal();
    const sentAt = runtime.now().monotonicMs;
    const first = await this.#askFirst(request, proposal);
    if (first?.vote.status === 'held') return heldAtFirst(first.vote);
    const { outcome, answers, complete } = await poll(
      this.#nodes,
      this.#quorum,
      (node) =>
        node === first?.node ? Promise.resolve(first.vote) : acquireAt(node, request, proposal),
      (votes, awaited) => acquireOutcome(votes, awaited, this.#nodes),
    );
    if (outcome.status === 'granted') {
      const standing: Standing = {
        lease: request,
        lastToken: outcome.fencingToken,
        untilMs: sentAt + request.ttlMs,
        state: 'held',
        isBrought: false,
      };
      leases.add(standing);
      void complete.then((votes) => leases.complete(request, standing, votes));
      const agreed = await this.#agree(request, outcome, answers);
      if (agreed.status !== 'granted') leases.end(request);
      return agreed;
    }
    // After an outage the caller removes what may be left on any of the nodes.
    if (outcome.status === 'held') await this.#withdraw(request, answers);
    return outcome;
  }

  /**
   * After a split vote one node is asked before the others. All callers that try again ask the same one, and only the
   * caller that has its vote asks for more.
   */
  async #askFirst(
    request: AcquireRequest,
    proposal: number,
  ): Promise<{ readonly node: RedisNode; readonly vote: Vote } | undefined> {
    if ((request.splits ?? 0) === 0) return undefined;
    const node = this.#nodes.find(({ isThere, isSilent }) => isThere && !isSilent);
    return node && { node, vote: await acquireAt(node, request, proposal) };
  }

  /** A fencing token that all nodes can take: ahead of every clock, so that none of them has to go beyond it. */
  #proposal(): number {
    const clocks = this.#nodes.map((node) => node.clock.onArrivalUs() ?? 0);
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
    const lower = this.#nodes.filter((_, index) => (tokens[index] ?? Infinity) < fencingToken);
    const { key, token, ttlMs } = request;
    const { outcome } = await poll<RedisNode, Unavailable | 'raised', AcquireOutcome>(
      lower,
      missing,
      async (node) => {
        const raised = await node.ask(raiseFenceScript, { key, token, ttlMs, fencingToken });
        if (raised.status !== 'lost') return raised.status === 'raised' ? 'raised' : raised;
        return node.connection.failure('error', 'lost while the others were asked');
      },
      (answers, awaited) => {
        const raised = answers.filter((answer) => answer === 'raised').length;
        if (raised >= missing) return granted;
        if (raised + awaited >= missing) return undefined;
        const failures = this.#nodes.map((node) => {
          const answer = answers[lower.indexOf(node)];
          return answer === 'raised' ? undefined : answer;
        });
        // The lease was granted before: there is something to remove.
        const { sent: _, ...outage } = unavailable(failures, this.#nodes);
        return outage;
      },
    );
    return outcome;
  }

  /** Takes votes back that were not enough. What did not answer may have voted, or may yet. */
  async #withdraw(request: AcquireRequest, votes: readonly (Vote | undefined)[]): Promise<void> {
    await Promise.all(
      this.#nodes.map(async (node, index) => {
        const vote = votes[index];
        if (vote?.status === 'held') return;
        // No caller has to be notified: a caller that this vote refused knows that it was no majority, and asks again.
        const isGone =
          vote?.status === 'granted' &&
          (await releaseAt(node, request, { wakes: 'nobody', lastToken: vote.fencingToken }))
            .status !== 'unavailable';
        const wasNeverSent = vote?.status === 'unavailable' && vote.sent === false;
        if (!isGone && !wasNeverSent) this.#deps.leftOvers.remove(node, request);
      }),
    );
  }
}
