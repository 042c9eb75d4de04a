import type { LeaseRequest, TransferOutcome, TransferRequest } from '../../lock-store.js';
import type { Scheduler } from '../../../time/scheduler.js';
import type { RedisNode } from '../node/redis-node.js';
import type { LeftOvers } from './left-overs.js';
import { poll, quorumOf } from './poll.js';
import type { Standing, StandingLeases } from './standing-leases.js';
import { transferOutcome } from './votes.js';

/** After this many ms a node that refused a lease is asked for it once more: longer than an unsuccessful try takes. */
const ASK_AGAIN_MS = 200;

interface Dependencies {
  readonly nodes: readonly RedisNode[];
  readonly scheduler: Scheduler;
  readonly standing: StandingLeases;
  readonly leftOvers: LeftOvers;
}

/**
 * Gives a lease of this service another owner token on a majority of the nodes, for another mode; with one node, there.
 * Over several, no lease goes to another service: the callers that attach it could split the votes.
 */
export class QuorumTransfer {
  readonly #deps: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  async transfer(request: TransferRequest): Promise<TransferOutcome> {
    const { nodes, standing, scheduler } = this.#deps;
    const [only, second] = nodes;
    if (only !== undefined && second === undefined) return only.transfer(request);
    const sentAt = scheduler.runtime.now().monotonicMs;
    // From here on nothing is brought to a node under the old token.
    standing.end(request.token);
    const { outcome, complete } = await poll(
      nodes,
      quorumOf(nodes.length),
      (node) => node.transfer(request),
      (votes, awaited) => transferOutcome(votes, awaited, nodes),
    );
    if (outcome.status === 'transferred') this.#transferred(request, complete, sentAt);
    if (outcome.status === 'lost') await this.#takeBack(request, await complete);
    return outcome;
  }

  #transferred(
    request: TransferRequest,
    complete: Promise<readonly TransferOutcome[]>,
    sentAt: number,
  ): void {
    const { nodes, standing, leftOvers } = this.#deps;
    const { keys, token, to, ttlMs, lastToken } = request;
    const lease: LeaseRequest = { keys, token: to, ttlMs };
    const stands: Standing = { lease, lastToken, untilMs: sentAt + ttlMs, state: 'held' };
    standing.add(stands);
    void complete.then((votes) => {
      nodes.forEach((node, index) => {
        const { status } = votes[index] ?? {};
        if (status === 'transferred') return;
        // What it knows the lease by there would be in the way of the new token.
        if (status === 'unavailable') leftOvers.remove(node, { keys, token, ttlMs });
        this.#completeAt(node, request, stands);
      });
    });
  }

  /** The node may have had another caller's vote, which came to nothing. */
  #completeAt(node: RedisNode, request: TransferRequest, stands: Standing): void {
    const { scheduler, standing } = this.#deps;
    scheduler.schedule(ASK_AGAIN_MS, () => {
      if (stands.state !== 'held') return;
      void node.transfer(request).then(({ status }) => {
        if (status !== 'transferred') standing.bringTo(node, stands);
      });
    });
  }

  /** Another caller has the lease, or it is over. The keys of it that were taken block their next holder. */
  async #takeBack(request: TransferRequest, votes: readonly TransferOutcome[]): Promise<void> {
    const { nodes, leftOvers } = this.#deps;
    const { keys, to: token, ttlMs } = request;
    await Promise.all(
      nodes.map(async (node, index) => {
        if (votes[index]?.status === 'lost') return;
        const { status } = await node.release({ keys, token }, { wakes: 'nobody' });
        if (status === 'unavailable') leftOvers.remove(node, { keys, token, ttlMs });
      }),
    );
  }
}
