import type { LeaseRequest, TransferOutcome, TransferRequest } from '../../lock-store.js';
import type { Scheduler } from '../../../time/scheduler.js';
import { holdModeOf } from '../../owner-token.js';
import type { RedisNode } from '../node/redis-node.js';
import type { LeftOvers } from './left-overs.js';
import { poll, quorumOf } from './poll.js';
import type { Standing, StandingLeases } from './standing-leases.js';
import { transferOutcome } from './votes.js';

/** Several who attach one lease at once may get some of the nodes each, and none of them a majority: so often each of them tries. */
const CONTENDED_TRIES = 5;

/** The longest pause after the first of these tries, in ms; after the second twice that, and so on. */
const PAUSE_MS = 10;

/** After this many ms a node that refused a lease is asked for it once more: longer than an unsuccessful try takes. */
const ASK_AGAIN_MS = 200;

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
    const { nodes, standing, scheduler } = this.#deps;
    const [only, second] = nodes;
    if (only !== undefined && second === undefined) return only.transfer(request);
    // From here on nothing is brought to a node under the old token.
    standing.end(request.token);
    const outcome = await this.#contend(request, scheduler.runtime.now().monotonicMs);
    // Of those that hold a key together no node tells which one was attached.
    const isUnknown = outcome.status === 'lost' && outcome.reason === 'attached';
    return isUnknown && holdModeOf(request.token) !== 'exclusive'
      ? { status: 'lost', reason: 'gone' }
      : outcome;
  }

  async #contend(request: TransferRequest, sentAt: number): Promise<TransferOutcome> {
    let unheard: readonly RedisNode[] = [];
    for (let tries = 1; ; tries += 1) {
      const first = tries === 1 ? undefined : await this.#askFirst(request);
      if (first?.vote.status === 'lost' && first.vote.reason === 'attached')
        return this.#refused(request, first.vote, unheard);
      const { outcome, isContended } = await this.#ask(request, { first, sentAt });
      if (!isContended) return outcome;
      unheard = await this.#giveBack(request);
      if (tries === CONTENDED_TRIES) return this.#refused(request, outcome, unheard);
      await this.#pause(tries);
    }
  }

  /**
   * After a split vote one node is asked before the others. All callers that try again ask the same one, and leave the
   * lease to the caller that has its vote.
   */
  async #askFirst(request: TransferRequest): Promise<First | undefined> {
    const node = this.#deps.nodes.find(({ isThere, isSilent }) => isThere && !isSilent);
    return node && { node, vote: await node.transfer(request) };
  }

  async #ask(request: TransferRequest, { first, sentAt }: Before): Promise<Asked> {
    const { nodes } = this.#deps;
    const { outcome, complete } = await poll(
      nodes,
      quorumOf(nodes.length),
      (node) => (node === first?.node ? Promise.resolve(first.vote) : node.transfer(request)),
      (votes, awaited) =>
        awaited > 0 && this.#isOwed(request, votes)
          ? undefined
          : transferOutcome(votes, awaited, nodes),
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

  /**
   * Whether a reachable node has not replied to a detach. Another process attaches the lease, over connections of its own.
   * A node that gets the detach after the release of that process would keep the keys taken for the whole TTL.
   */
  #isOwed({ holder }: TransferRequest, votes: readonly (TransferOutcome | undefined)[]): boolean {
    const { nodes } = this.#deps;
    return holder === 'nobody' && nodes.some(({ isThere }, index) => isThere && !votes[index]);
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
        if (holder === 'this service') this.#completeAt(node, request, stands);
      });
    });
  }

  /** Another caller that attaches the lease may have had the node, and returned it. */
  #completeAt(node: RedisNode, request: TransferRequest, stands: Standing): void {
    const { scheduler, standing } = this.#deps;
    scheduler.schedule(ASK_AGAIN_MS, () => {
      if (stands.state !== 'held') return;
      void node.transfer(request).then(({ status }) => {
        if (status !== 'transferred') standing.bringTo(node, stands);
      });
    });
  }

  /**
   * Returns the votes, because other callers may be about to get them. The lease then belongs to any of them until one
   * has a majority.
   *
   * @returns the nodes that did not confirm it
   */
  async #giveBack(request: TransferRequest): Promise<readonly RedisNode[]> {
    const { nodes } = this.#deps;
    const back: TransferRequest = { ...request, token: request.to, to: request.token };
    const answers = await Promise.all(nodes.map((node) => node.transfer(back)));
    return nodes.filter((_, index) => answers[index]?.status === 'unavailable');
  }

  /** What a silent node may have kept of the last try would be in the way of those who have the lease. */
  #refused(
    { keys, to: token, ttlMs }: TransferRequest,
    outcome: TransferOutcome,
    unheard: readonly RedisNode[],
  ): TransferOutcome {
    for (const node of unheard) this.#deps.leftOvers.remove(node, { keys, token, ttlMs });
    return outcome;
  }

  /** Another caller has the lease, or it is over. The keys of it that were taken block their next holder. */
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

/** The node that is asked before the others, and what it says. */
interface First {
  readonly node: RedisNode;
  readonly vote: TransferOutcome;
}

interface Before {
  readonly first: First | undefined;
  /** When the first request was sent, by the monotonic clock. */
  readonly sentAt: number;
}

interface Asked {
  readonly outcome: TransferOutcome;
  /** Another caller attaches the lease at the same time, and neither has a majority. */
  readonly isContended: boolean;
}
