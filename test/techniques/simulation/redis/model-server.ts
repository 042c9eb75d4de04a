import {
  LOADS,
  shownKey,
  shownReply,
  type ComparedServer,
  type Messages,
  type Outcome,
} from './compared-server.js';
import { RedisModel, type ModelCommand } from './model.js';
import type { Step } from './steps.js';

/** The model, as steps happen to it. */
export class ModelServer implements ComparedServer {
  readonly #runId: string;
  readonly #listened = new Set<string>();
  #messages: Messages = { plain: [], sharded: [] };
  #model = new RedisModel();

  constructor(runId: string) {
    this.#runId = runId;
  }

  async play(steps: readonly Step[]): Promise<readonly Outcome[]> {
    this.begin();
    return steps.map((step) => ({ reply: this.happen(step), keys: this.#keys(step.atUs) }));
  }

  async messages(): Promise<Messages> {
    return this.#messages;
  }

  begin(): void {
    this.#model = new RedisModel({ runId: this.#runId });
    this.#messages = { plain: [], sharded: [] };
    this.#listened.clear();
    for (const load of LOADS) this.#execute(load, 0);
  }

  /** One step. Gives the answer. */
  happen(step: Step): unknown {
    if ('command' in step) return this.#execute(step.command, step.atUs);
    if ('memory' in step) this.#model.memory = step.memory;
    else if (step.listens === 'begins') this.#listened.add(`${step.kind} ${step.channel}`);
    else this.#listened.delete(`${step.kind} ${step.channel}`);
    return 'OK';
  }

  /** When keys expire. */
  expiries(atUs: number): readonly number[] {
    const all = this.#model.keysAt(atUs).map(({ expiresAtMs }) => expiresAtMs);
    return all.filter((expiresAtMs) => expiresAtMs !== Infinity);
  }

  #execute(command: ModelCommand, nowUs: number): unknown {
    const reply = this.#model.execute(command, {
      nowUs,
      publish: (channel, message, kind) => {
        if (!this.#listened.has(`${kind} ${channel}`)) return 0;
        this.#messages[kind].push(`${channel}: ${message}`);
        return 1;
      },
      subscribers: (channel, kind) => (this.#listened.has(`${kind} ${channel}`) ? 1 : 0),
    });
    return shownReply(reply);
  }

  #keys(atUs: number): readonly string[] {
    const nowMs = Math.floor(atUs / 1_000);
    return this.#model
      .keysAt(atUs)
      .map(({ key, type, value, expiresAtMs }) => {
        const leftMs = expiresAtMs === Infinity ? -1 : expiresAtMs - nowMs;
        return shownKey(key, type, leftMs, typeof value === 'string' ? [value] : value);
      })
      .sort();
  }
}
