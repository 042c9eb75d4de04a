import type { Unavailable } from '../../lock-store.js';
import type {
  BeginOutcome,
  BeginRequest,
  FinishOutcome,
  FinishRequest,
  KeepRequest,
  OnceStore,
} from '../../once-store.js';
import { poll, quorumOf } from '../poll.js';
import { unavailable } from '../votes.js';
import type { NodeOnce } from './node-once.js';
import { beginOutcome, finishOutcome } from './once-votes.js';

/** One of the nodes that vote. */
export interface OnceNode {
  readonly name: string;
  readonly isSilent: boolean;
  readonly once: NodeOnce;
}

/** What a majority of nodes knows of work that is to be done once; with one node, a majority of one. */
export class RedisOnceStore implements OnceStore {
  readonly #nodes: readonly OnceNode[];
  readonly #quorum: number;

  constructor(nodes: readonly OnceNode[]) {
    this.#nodes = nodes;
    this.#quorum = quorumOf(nodes.length);
  }

  async begin(request: BeginRequest): Promise<BeginOutcome> {
    const { outcome, answers, complete } = await poll(
      this.#nodes,
      this.#quorum,
      (node) => node.once.begin(request),
      (votes, awaited) => beginOutcome(votes, awaited, this.#nodes),
    );
    if (outcome.status === 'begun') return this.#agree(request, outcome.attempt, answers);
    if (outcome.status === 'done' || outcome.status === 'exhausted') {
      await this.#spread(request, outcome, answers);
      const late = complete.then((votes) =>
        votes.map((vote, index) => (answers[index] === undefined ? vote : undefined)),
      );
      void late.then((votes) => this.#spread(request, outcome, votes));
    }
    return outcome;
  }

  async keep(request: KeepRequest): Promise<FinishOutcome> {
    const { outcome } = await this.#ask((node) => node.once.keep(request));
    return outcome;
  }

  async finish(request: FinishRequest): Promise<FinishOutcome> {
    const { outcome, complete } = await this.#ask((node) => node.once.finish(request));
    if (outcome.status === 'superseded' && this.#nodes.length > 1) {
      // A node that was not there when the next attempt began has believed it: what it says would count.
      const votes = await complete;
      await Promise.all(
        this.#nodes
          .filter((_, index) => votes[index]?.status === 'accepted')
          .map((node) => node.once.undo(request)),
      );
    }
    return outcome;
  }

  #ask(ask: (node: OnceNode) => Promise<FinishOutcome>) {
    return poll(this.#nodes, this.#quorum, ask, (votes, awaited) =>
      finishOutcome(votes, awaited, this.#nodes),
    );
  }

  /** The largest number counts once a majority has it: every later attempt is counted from there. */
  async #agree(
    request: BeginRequest,
    attempt: number,
    votes: readonly (BeginOutcome | undefined)[],
  ): Promise<BeginOutcome> {
    const numbers = votes.map((vote) => (vote?.status === 'begun' ? vote.attempt : undefined));
    const missing = this.#quorum - numbers.filter((number) => number === attempt).length;
    if (missing <= 0) return { status: 'begun', attempt };
    const lower = this.#nodes.filter((_, index) => (numbers[index] ?? Infinity) < attempt);
    const { outcome } = await poll<OnceNode, FinishOutcome, BeginOutcome>(
      lower,
      missing,
      (node) => node.once.keep({ ...request, attempt }),
      (answers, awaited) => {
        const raised = answers.filter((answer) => answer?.status === 'accepted').length;
        if (raised >= missing) return { status: 'begun', attempt };
        if (raised + awaited >= missing) return undefined;
        const failures: (Unavailable | undefined)[] = this.#nodes.map((node) => {
          const answer = answers[lower.indexOf(node)];
          return answer?.status === 'unavailable' ? answer : undefined;
        });
        return unavailable(failures, this.#nodes);
      },
    );
    return outcome;
  }

  /** Where this try has begun, although others know that it is over, that is told: they may not be there when it is asked for next. */
  async #spread(
    { key, token, owner, keepMs }: BeginRequest,
    outcome: BeginOutcome & { readonly status: 'done' | 'exhausted' },
    votes: readonly (BeginOutcome | undefined)[],
  ): Promise<void> {
    const [end, text] =
      outcome.status === 'done'
        ? (['done', outcome.value] as const)
        : (['final', outcome.error] as const);
    const request = { key, token, owner, attempt: outcome.attempts, end, text, lifeMs: keepMs };
    await Promise.all(
      this.#nodes
        .filter((_, index) => votes[index]?.status === 'begun')
        .map((node) => node.once.finish(request)),
    );
  }
}
