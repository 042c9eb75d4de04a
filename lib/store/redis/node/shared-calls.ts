import type { Runtime } from '../../../time/runtime.js';
import type { RedisConnection, Reply } from '../client/redis-connection.js';
import type { Share, SharedVerb } from '../scripts/plain.js';
import { partsOf } from '../scripts/script.js';

/** 24 requests take the server less than 0.1 ms, in which it does nothing else. */
const MOST_TOGETHER = 24;

/** What calls are made of. */
type Shared = Omit<SharedVerb<never, unknown>, 'encode' | 'decode'>;

interface Terms {
  readonly runtime: Runtime;
  readonly timeLimitMs: number;
  /** Whether keys of all slots can be given to one call. */
  readonly isOneCall: boolean;
}

interface Waiting {
  readonly share: Share;
  readonly settle: (reply: Reply) => void;
}

/** Requests that are one call, in the order in which they were asked for. */
interface Together {
  readonly script: Shared;
  readonly waiting: Waiting[];
}

/**
 * Group commit: while a call is on its way, what else is asked for in the same turn of the event loop goes out as one call. A request that
 * comes alone is sent at once, and none waits for a timer or for an answer.
 */
export class SharedCalls {
  readonly #connection: RedisConnection;
  readonly #terms: Terms;
  readonly #calls: Together[] = [];
  /** What waits is sent at the end of this turn of the event loop. */
  #isPlanned = false;

  constructor(connection: RedisConnection, terms: Terms) {
    this.#connection = connection;
    this.#terms = terms;
  }

  /** Never rejects. */
  run(script: Shared, share: Share, withinMs: number): Promise<Reply> {
    const { timeLimitMs, isOneCall } = this.#terms;
    const isFree = !this.#connection.isBusy && this.#calls.length === 0;
    if (isFree || !isOneCall || withinMs < timeLimitMs) {
      this.flush(); // nothing overtakes what was asked for before it
      const call = partsOf(share.keys.length, share.keys);
      for (const arg of share.args) call.push(arg);
      return this.#connection.run(script, call, Math.min(timeLimitMs, withinMs), script.whileDown);
    }
    return new Promise((settle) => {
      this.#join(script, { share, settle });
    });
  }

  /** A call that is full goes out at once, so that the server begins with it while the next one is made. */
  #join(script: Shared, waiting: Waiting): void {
    const last = this.#calls.at(-1);
    if (last?.script !== script) {
      this.#calls.push({ script, waiting: [waiting] });
      this.#sendAfterInput();
    } else if (last.waiting.push(waiting) >= MOST_TOGETHER) this.flush();
  }

  #sendAfterInput(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#terms.runtime.afterInput(() => {
      this.#isPlanned = false;
      this.flush();
    });
  }

  /** Sends what waits. */
  flush(): void {
    if (this.#calls.length === 0) return;
    for (const { script, waiting } of this.#calls.splice(0)) void this.#together(script, waiting);
  }

  /** Never rejects. */
  async #together(script: Shared, waiting: readonly Waiting[]): Promise<void> {
    const call = partsOf(0);
    for (const { share } of waiting) {
      call[0] += share.keys.length;
      for (const key of share.keys) call.push(key);
    }
    for (const { share } of waiting) for (const arg of share.args) call.push(arg);
    const { timeLimitMs } = this.#terms;
    const reply = await this.#connection.run(script, call, timeLimitMs, script.whileDown);
    for (const [index, { settle }] of waiting.entries())
      settle(waiting.length === 1 ? reply : part(reply, index));
  }
}

const part = (reply: Reply, index: number): Reply =>
  reply.status === 'answered' && Array.isArray(reply.value)
    ? { status: 'answered', value: reply.value[index] as unknown }
    : reply;
