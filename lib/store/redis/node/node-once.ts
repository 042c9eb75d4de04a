import type {
  BeginRequest,
  FinishOutcome,
  FinishRequest,
  KeepRequest,
  OnceReference,
} from '../../once-store.js';
import type { Unavailable } from '../../lock-store.js';
import type { AcknowledgedReply } from './acknowledged-writes.js';

/** How the script is run at one node. */
export interface OnceScriptRunner {
  /**
   * @param isToStay what replicas have to have, where that is asked for; everything else is sent at once, ahead of whatever is asked for
   *   later
   */
  run(
    key: string,
    args: readonly (string | number)[],
    isToStay: boolean,
  ): Promise<AcknowledgedReply>;
  malformed(value: unknown): Unavailable;
}

/** That the work is over, as one node knows it. */
export interface NodeEnd {
  readonly status: 'done' | 'exhausted';
  readonly attempts: number;
  /** The value, or the error. */
  readonly text?: string | undefined;
  /** The fence that the node accepted it with. */
  readonly sure: number;
  /** Whether the node accepts nothing more with a fence that is smaller than that of the request. */
  readonly hasPromised: boolean;
  readonly owner: string;
  /** For so long the node will remember it, in ms. */
  readonly leftMs: number;
}

/** What one node says to a request to begin. */
export type BeginVote =
  /** `sure`: the fence that the node accepted what it knew with. */
  | {
      readonly status: 'begun';
      readonly attempt: number;
      readonly lastError?: string | undefined;
      readonly sure: number;
    }
  | NodeEnd
  | { readonly status: 'lost'; readonly attempts: number; readonly sure: number }
  | Unavailable;

/** Without the others, the work would only be tried again, or count as tried. */
const TO_STAY: ReadonlySet<string> = new Set(['begin', 'done', 'final']);

/** What one node knows of work that is to be done once. */
export class NodeOnce {
  readonly #runner: OnceScriptRunner;

  constructor(runner: OnceScriptRunner) {
    this.#runner = runner;
  }

  async begin(request: BeginRequest): Promise<BeginVote> {
    const { attempts, lifeMs, keepMs } = request;
    const reply = await this.#run('begin', request, [lifeMs, attempts, keepMs]);
    if (reply.status === 'unavailable') return reply;
    const [result, number, detail, accepted, promised, owner, left] = Array.isArray(reply.value)
      ? (reply.value as unknown[])
      : [];
    const [attempt, sure] = [Number(number), Number(accepted)];
    if (!Number.isSafeInteger(attempt) || !Number.isSafeInteger(sure))
      return this.#runner.malformed(reply.value);
    const text = typeof detail === 'string' && detail !== '' ? detail : undefined;
    if (result === 0) return { status: 'lost', attempts: attempt, sure };
    if (result === 1) return reply.shortfall ?? { status: 'begun', attempt, lastError: text, sure };
    if (result !== 2 && result !== 3) return this.#runner.malformed(reply.value);
    return {
      status: result === 2 ? 'done' : 'exhausted',
      attempts: attempt,
      text,
      sure,
      hasPromised: promised === 1,
      owner: String(owner),
      leftMs: Number(left) > 0 ? Number(left) : keepMs,
    };
  }

  keep(request: KeepRequest): Promise<FinishOutcome> {
    return this.#change('keep', request, [request.lifeMs, request.attempt, '']);
  }

  finish(request: FinishRequest): Promise<FinishOutcome> {
    const { end, lifeMs, attempt, text = '' } = request;
    return this.#change(end, request, [lifeMs, attempt, text]);
  }

  /** Takes an end back that not enough of several nodes have accepted. */
  undo(request: FinishRequest): Promise<FinishOutcome> {
    return this.#change('undo', request, [request.lifeMs, request.attempt, '']);
  }

  async #change(
    what: string,
    reference: OnceReference,
    args: readonly (string | number)[],
  ): Promise<FinishOutcome> {
    const reply = await this.#run(what, reference, args);
    if (reply.status === 'unavailable') return reply;
    const [result] = Array.isArray(reply.value) ? (reply.value as unknown[]) : [];
    if (result === 0) return { status: 'superseded' };
    if (result !== 1) return this.#runner.malformed(reply.value);
    return reply.shortfall ?? { status: 'accepted' };
  }

  #run(
    what: string,
    { key, token, owner, fencingToken }: OnceReference,
    args: readonly (string | number)[],
  ): Promise<AcknowledgedReply> {
    const all = [what, token, owner, ...args, fencingToken];
    return this.#runner.run(key, all, TO_STAY.has(what));
  }
}
