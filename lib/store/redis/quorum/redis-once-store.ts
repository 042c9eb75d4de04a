import type {
  BeginOutcome,
  BeginRequest,
  FinishOutcome,
  FinishRequest,
  KeepRequest,
  OnceReference,
  OnceStore,
} from '../../once-store.js';
import { poll, quorumOf } from './poll.js';
import type { BeginVote, NodeEnd, NodeOnce } from '../node/node-once.js';
import { beginDecision, finishOutcome } from './once-votes.js';

/** One of the nodes that vote. */
export interface OnceNode {
  readonly name: string;
  readonly isSilent: boolean;
  readonly once: NodeOnce;
}

/**
 * What a majority of nodes knows of work that is to be done once; with one node, a majority of one.
 *
 * Over several nodes it is Paxos (Lamport, "Paxos made simple", 2001) for each attempt, with its fencing token as the
 * ballot. The begin is the promise. The accepted value is first that the attempt runs, and then how it ended. An
 * attempt works, and a caller is notified of an end, only after a majority has accepted that.
 */
export class RedisOnceStore implements OnceStore {
  readonly #nodes: readonly OnceNode[];
  readonly #quorum: number;

  constructor(nodes: readonly OnceNode[]) {
    this.#nodes = nodes;
    this.#quorum = quorumOf(nodes.length);
  }

  async begin(given: BeginRequest): Promise<BeginOutcome> {
    const request = this.#ranked(given);
    // Over several, none of them knows how many have begun.
    const attempts = this.#isOne ? request.attempts : Number.MAX_SAFE_INTEGER;
    const { outcome, complete } = await poll(
      this.#nodes,
      this.#quorum,
      (node) => node.once.begin({ ...request, attempts }),
      (votes, awaited) => beginDecision(votes, awaited, this.#nodes),
    );
    if (outcome.status === 'begun') return this.#confirm(request, outcome);
    if (outcome.status !== 'over') return outcome;
    const { end, standing } = outcome;
    if (standing === 'known') {
      // One that does not know it may be one of a majority that is asked for next.
      if (request.fencingToken > 0)
        void complete.then((votes) => this.#spread(request, end, votes));
      return over(end);
    }
    return this.#settle(standing === 'to-adopt' ? request : ownersOf(end, request), end);
  }

  async keep(request: KeepRequest): Promise<FinishOutcome> {
    const ranked = this.#ranked(request);
    const { outcome } = await this.#ask((node) => node.once.keep(ranked));
    return outcome;
  }

  async finish(given: FinishRequest): Promise<FinishOutcome> {
    const request = this.#ranked(given);
    const { outcome, complete } = await this.#ask((node) => node.once.finish(request));
    if (outcome.status === 'superseded' && !this.#isOne) {
      // A node that was not there when the next attempt began has believed it: those who ask should not find that.
      const votes = await complete;
      await Promise.all(
        this.#nodes
          .filter((_, index) => votes[index]?.status === 'accepted')
          .map((node) => node.once.undo(request)),
      );
    }
    return outcome;
  }

  get #isOne(): boolean {
    return this.#nodes.length === 1;
  }

  /** With one node nothing has to be ordered: the last caller is the latest. */
  #ranked<Request extends OnceReference>(request: Request): Request {
    return this.#isOne ? { ...request, fencingToken: 0 } : request;
  }

  #ask(ask: (node: OnceNode) => Promise<FinishOutcome>) {
    return poll(this.#nodes, this.#quorum, ask, (votes, awaited) =>
      finishOutcome(votes, awaited, this.#nodes),
    );
  }

  /** Begins to work once a majority knows it, with the largest number of theirs: every later attempt is counted from there. */
  async #confirm(
    request: BeginRequest,
    { attempt, lastError }: { readonly attempt: number; readonly lastError?: string | undefined },
  ): Promise<BeginOutcome> {
    if (this.#isOne) return { status: 'begun', attempt };
    if (attempt > request.attempts) {
      const [attempts, leftMs] = [attempt - 1, request.keepMs];
      return this.#settle(request, { status: 'exhausted', attempts, text: lastError, leftMs });
    }
    const { outcome } = await this.#ask((node) => node.once.keep({ ...request, attempt }));
    if (outcome.status === 'accepted') return { status: 'begun', attempt };
    return outcome.status === 'superseded' ? { status: 'lost', attempts: attempt } : outcome;
  }

  /** That the work is over counts once a majority knows it. */
  async #settle(by: OnceReference, end: End): Promise<BeginOutcome> {
    const { outcome } = await this.#ask((node) => node.once.finish(endOf(by, end)));
    if (outcome.status === 'accepted') return over(end);
    // A later attempt has begun: that one decides.
    return outcome.status === 'superseded' ? { status: 'lost', attempts: end.attempts } : outcome;
  }

  /** Tells those of it that did not know. */
  async #spread(by: OnceReference, end: NodeEnd, votes: readonly BeginVote[]): Promise<void> {
    const knows = (vote: BeginVote | undefined): boolean =>
      vote?.status === end.status && vote.sure === end.sure;
    await Promise.all(
      this.#nodes
        .filter((_, index) => !knows(votes[index]))
        .map((node) => node.once.finish(endOf(by, end))),
    );
  }
}

type End = Pick<NodeEnd, 'status' | 'attempts' | 'text' | 'leftMs'>;

const over = ({ status, attempts, text }: End): BeginOutcome =>
  status === 'done' ? { status, attempts, value: text } : { status, attempts, error: text };

const endOf = ({ key, token, owner, fencingToken }: OnceReference, end: End): FinishRequest => ({
  ...{ key, token, owner, fencingToken },
  attempt: end.attempts,
  end: end.status === 'done' ? 'done' : 'final',
  text: end.text,
  lifeMs: end.leftMs,
});

/** The request of the owner that ended it, who would send it again. */
const ownersOf = ({ owner, sure }: NodeEnd, { key, token }: OnceReference): OnceReference => ({
  ...{ key, token, owner },
  fencingToken: sure,
});
