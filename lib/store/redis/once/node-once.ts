import type {
  BeginOutcome,
  BeginRequest,
  FinishOutcome,
  FinishRequest,
  KeepRequest,
  OnceReference,
  OnceStore,
} from '../../once-store.js';
import type { Unavailable } from '../../lock-store.js';
import type { AcknowledgedReply } from '../acknowledged-writes.js';

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

/** Without the others, the work would only be tried again, or count as tried. */
const TO_STAY: ReadonlySet<string> = new Set(['begin', 'done', 'final']);

/** What one node knows of work that is to be done once. */
export class NodeOnce implements OnceStore {
  readonly #runner: OnceScriptRunner;

  constructor(runner: OnceScriptRunner) {
    this.#runner = runner;
  }

  async begin(request: BeginRequest): Promise<BeginOutcome> {
    const { attempts, lifeMs, keepMs } = request;
    const reply = await this.#run('begin', request, [lifeMs, attempts, keepMs]);
    if (reply.status === 'unavailable') return reply;
    const [result, number, text] = Array.isArray(reply.value) ? (reply.value as unknown[]) : [];
    const attempt = Number(number);
    const detail = typeof text === 'string' && text !== '' ? text : undefined;
    if (!Number.isSafeInteger(attempt)) return this.#runner.malformed(reply.value);
    if (result === 2) return { status: 'done', attempts: attempt, value: detail };
    if (result === 3) return { status: 'exhausted', attempts: attempt, error: detail };
    if (result === 0) return { status: 'lost', attempts: attempt };
    if (result !== 1) return this.#runner.malformed(reply.value);
    return reply.shortfall ?? { status: 'begun', attempt };
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
    { key, token, owner }: OnceReference,
    args: readonly (string | number)[],
  ): Promise<AcknowledgedReply> {
    return this.#runner.run(key, [what, token, owner, ...args], TO_STAY.has(what));
  }
}
