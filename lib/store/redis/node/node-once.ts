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
import { onceScript, type OnceCall } from '../scripts/once.js';
import type { Malformed } from '../scripts/script.js';
import type { AcknowledgedReply } from './acknowledged-writes.js';
import type { NodeScripts } from './node-scripts.js';

/**
 * `'acknowledged'`: replicas have to have it, where that is asked for. Everything else is sent at once, ahead of whatever is asked for
 * later.
 */
export type Durability = 'acknowledged' | 'at once';

/** How the script is run at the node. */
export interface OnceScriptRunner {
  run(key: string, call: OnceCall, durability: Durability): Promise<AcknowledgedReply>;
  readonly malformed: (answer: Pick<Malformed, 'reply'>) => Unavailable;
}

type OnceStep = OmitEach<OnceCall, 'token' | 'owner'>;

/** `Omit` of each member of a union. */
type OmitEach<Union, Name extends PropertyKey> = Union extends unknown ? Omit<Union, Name> : never;

/** Without the others, the work would only be tried again, or count as tried. */
const TO_STAY: ReadonlySet<string> = new Set(['begin', 'done', 'final']);

/** The records of work that is to be done once, at one node. */
export class NodeOnce implements OnceStore {
  readonly #runner: OnceScriptRunner;

  constructor(runner: OnceScriptRunner) {
    this.#runner = runner;
  }

  async begin(request: BeginRequest): Promise<BeginOutcome> {
    const { attempts, lifeMs, keepMs } = request;
    const reply = await this.#run(request, { what: 'begin', lifeMs, attempts, keepMs });
    if (reply.status === 'unavailable') return reply;
    const answer = onceScript.decode(reply.value);
    switch (answer.status) {
      case 'begun':
        return reply.shortfall ?? answer;
      case 'done':
      case 'exhausted':
      case 'lost':
        return answer;
      default:
        return this.#runner.malformed({ reply: reply.value });
    }
  }

  keep(request: KeepRequest): Promise<FinishOutcome> {
    const { lifeMs, attempt } = request;
    return this.#change(request, { what: 'keep', lifeMs, attempt });
  }

  finish(request: FinishRequest): Promise<FinishOutcome> {
    const { end, lifeMs, attempt, text } = request;
    return this.#change(request, { what: end, lifeMs, attempt, text });
  }

  async #change(reference: OnceReference, step: OnceStep): Promise<FinishOutcome> {
    const reply = await this.#run(reference, step);
    if (reply.status === 'unavailable') return reply;
    const answer = onceScript.decode(reply.value);
    if (answer.status === 'superseded') return answer;
    if (answer.status !== 'accepted') return this.#runner.malformed({ reply: reply.value });
    return reply.shortfall ?? answer;
  }

  #run(reference: OnceReference, step: OnceStep): Promise<AcknowledgedReply> {
    const { key, token, owner } = reference;
    const durability = TO_STAY.has(step.what) ? 'acknowledged' : 'at once';
    return this.#runner.run(key, { ...step, token, owner }, durability);
  }
}

/** At a node that has one. */
export const onceRunnerOf = (scripts: NodeScripts): OnceScriptRunner => ({
  async run(key, call, durability) {
    const { slots, options } = scripts.parts;
    const slot = slots.slot(key);
    const request = {
      script: onceScript,
      call: onceScript.encode(slots.names(key), call),
      timeLimitMs: options.nodeTimeoutMs,
    };
    const reply = await (durability === 'acknowledged'
      ? scripts.write(slot, request)
      : scripts.run(request));
    scripts.doubtAfter(reply);
    return reply;
  },
  malformed: (answer) => scripts.parts.connection.malformed(answer),
});
