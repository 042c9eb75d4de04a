import type { LeaseRequest, TransferOutcome, TransferRequest } from '../../lock-store.js';
import type { Scheduler } from '../../../time/scheduler.js';
import type { RedisNode } from '../node/redis-node.js';
import type { LeftOvers } from './left-overs.js';
import { poll, quorumOf } from './poll.js';
import type { Standing, StandingLeases } from './standing-leases.js';
import { transferOutcome } from './votes.js';

/** Several who attach one lease at once may get some of the nodes each, and none of them a majority: so often each of them tries. */
const CONTENDED_TRIES = 5;

/** The longest pause between two of these tries, in ms, of the first; of the others as many times that. */
const PAUSE_MS = 10;

interface Dependencies {
  readonly nodes: readonly RedisNode[];
  readonly scheduler: Scheduler;
  readonly standing: StandingLeases;
  readonly leftOvers: LeftOvers;
}

/** Gives a lease another owner token on a majority of the nodes; with one node, there. */
export class QuorumTransfer {
  readonly #deps: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  async transfer(request: TransferRequest): Promise<TransferOutcome> {
    const { nodes, standing } = this.#deps;
    const [only, second] = nodes;
    if (only !== undefined && second === undefined) return only.transfer(request);
    // From here on nothing is brought to a node under the old token.
    standing.end(request.token);
    for (let tries = 1; ; tries += 1) {
      const { outcome, isContended } = await this.#tryOnce(request);
      if (!isContended) return outcome;
      if (tries === CONTENDED_TRIES) {
        await this.#takeBack(request);
        return outcome;
      }
      await this.#giveBack(request);
      await this.#pause(tries);
    }
  }

  async #tryOnce(request: TransferRequest): Promise<Try> {
    const { nodes, scheduler } = this.#deps;
    const sentAt = scheduler.runtime.now().monotonicMs;
    const { outcome, complete } = await poll(
      nodes,
      quorumOf(nodes.length),
      (node) => node.transfer(request),
      (votes, awaited) => transferOutcome(votes, awaited, nodes),
    );
    if (outcome.status === 'transferred') {
      this.#transferred(request, complete, sentAt);
      return { outcome, isContended: false };
    }
    if (outcome.status === 'unavailable') return { outcome, isContended: false };
    const votes = await complete;
    const isSplit = votes.some(({ status }) => status === 'transferred');
    if (isSplit && outcome.reason === 'attached') return { outcome, isContended: true };
    await this.#takeBack(request, votes);
    return { outcome, isContended: false };
  }

  #transferred(
    request: TransferRequest,
    complete: Promise<readonly TransferOutcome[]>,
    sentAt: number,
  ): void {
    const { nodes, standing, leftOvers } = this.#deps;
    const { keys, token, to, ttlMs, lastToken, holder } = request;
    const lease: LeaseRequest = { keys, token: to, ttlMs };
    const stands: Standing = { lease, lastToken, untilMs: sentAt + ttlMs, state: 'held' };
    if (holder === 'this service') standing.add(stands);
    void complete.then((votes) => {
      nodes.forEach((node, index) => {
        const { status } = votes[index] ?? {};
        if (status === 'transferred') return;
        // What it knows the lease by there would be in the way of the new token.
        if (status === 'unavailable') leftOvers.remove(node, { keys, token, ttlMs });
        if (holder === 'this service') standing.bringTo(node, stands);
      });
    });
  }

  /** Others may be about to get them: the lease is theirs then, and everybody's until one of them has a majority. */
  async #giveBack(request: TransferRequest): Promise<void> {
    const back: TransferRequest = { ...request, token: request.to, to: request.token };
    await Promise.all(this.#deps.nodes.map((node) => node.transfer(back)));
  }

  /** Somebody else has the lease, or nobody any more: what was taken of it is in the way of whoever holds the keys. */
  async #takeBack(request: TransferRequest, votes: readonly TransferOutcome[] = []): Promise<void> {
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

  #pause(tries: number): Promise<void> {
    const { scheduler } = this.#deps;
    const ms = PAUSE_MS * tries * scheduler.runtime.random();
    return new Promise((resolve) => void scheduler.schedule(ms, resolve));
  }
}

interface Try {
  readonly outcome: TransferOutcome;
  /** Somebody else attaches the lease at the same time, and neither has a majority. */
  readonly isContended: boolean;
}
