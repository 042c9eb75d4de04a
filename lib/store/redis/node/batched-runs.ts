import type { Runtime } from '../../../time/runtime.js';
import { isRefused } from '../client/failure.js';
import { errorOfCall } from '../client/foreign-data.js';
import { answered, type RedisConnection, type Reply } from '../client/redis-connection.js';
import { batchCall, replyIn, unusualIn } from '../scripts/batch.js';
import type { Batch } from '../scripts/script.js';
import type { WriteRequest } from './acknowledged-writes.js';

/** 24 requests of the usual kind take the server less than 0.2 ms, in which it does nothing else. */
const MOST_TOGETHER = 24;

/** The same for requests that find other holders, a line or a restart guard. */
const MOST_UNUSUAL = 4;

/** The keys of one lock, and the account of the restart guard. */
const MOST_KEYS = 5;

interface Waiting {
  readonly request: WriteRequest;
  readonly settle: (reply: Reply) => void;
}

/** Requests that are one call, in the order in which they were asked for. */
type Waitings = [Waiting, ...Waiting[]];

/**
 * Group commit: while a call is on its way, what else is asked for in the same turn of the event loop goes out as one call. A request that
 * comes alone is sent at once, and none waits for a timer or for an answer.
 */
export class BatchedRuns {
  readonly #connection: RedisConnection;
  readonly #runtime: Runtime;
  /** The time limit that requests have who wait together. */
  readonly #timeLimitMs: number;
  readonly #batches: Waitings[] = [];
  /** How many requests of a script are sent together: as many as those of its last call suggest. */
  readonly #most = new Map<Batch, number>();
  /** What waits is sent at the end of this turn of the event loop. */
  #isPlanned = false;

  constructor(connection: RedisConnection, runtime: Runtime, timeLimitMs: number) {
    this.#connection = connection;
    this.#runtime = runtime;
    this.#timeLimitMs = timeLimitMs;
  }

  run(request: WriteRequest): Promise<Reply> {
    if (!this.#mayWait(request)) {
      this.flush(); // nothing overtakes what was asked for before it
      return this.#alone(request);
    }
    return new Promise((settle) => {
      this.#join({ request, settle });
    });
  }

  /** A call that is full goes out at once, so that the server begins with it while the next one is made. */
  #join(waiting: Waiting): void {
    if (this.#batches.length === 0) this.#sendAfterInput();
    const last = this.#batches.at(-1);
    if (last === undefined || !areAlike(last[0].request, waiting.request))
      this.#batches.push([waiting]);
    else if (last.push(waiting) >= this.#mostOf(waiting.request)) this.flush();
  }

  #mostOf({ script: { batch } }: WriteRequest): number {
    return (batch && this.#most.get(batch)) ?? MOST_TOGETHER;
  }

  #sendAfterInput(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#runtime.afterInput(() => {
      this.#isPlanned = false;
      this.flush();
    });
  }

  #mayWait({ script, call, timeLimitMs }: WriteRequest): boolean {
    return (
      (this.#connection.isBusy || this.#batches.length > 0) &&
      script.batch !== undefined &&
      call[0] <= MOST_KEYS &&
      timeLimitMs === this.#timeLimitMs
    );
  }

  /** Sends what waits. */
  flush(): void {
    if (this.#batches.length === 0) return;
    for (const batch of this.#batches.splice(0)) {
      const [{ request, settle }] = batch;
      if (batch.length > 1 && request.script.batch !== undefined)
        void this.#together(request.script.batch, batch);
      else void this.#alone(request).then(settle);
    }
  }

  /** Never rejects. */
  #alone({ script, call, timeLimitMs, whileDown }: WriteRequest): Promise<Reply> {
    return this.#connection.run(script, call, timeLimitMs, whileDown);
  }

  /** Never rejects. */
  async #together(script: Batch, batch: Waitings): Promise<void> {
    const [{ request: first }] = batch;
    const { timeLimitMs, whileDown } = first;
    const call = batchCall(batch.map(({ request }) => request.call));
    // Four arguments, and no object for them: see `partsOf`.
    const reply = await this.#connection.run(script, call, timeLimitMs, whileDown);
    if (reply.status !== 'unavailable')
      this.#most.set(script, unusualIn(reply.value) > MOST_UNUSUAL ? MOST_UNUSUAL : MOST_TOGETHER);
    for (const [index, { request, settle }] of batch.entries()) {
      // One of them may be the reason: it has a key that the Redis user may not use, for instance.
      if (reply.status === 'unavailable' && isRefused(reply))
        void this.#alone(request).then(settle);
      else if (reply.status === 'unavailable') settle(reply);
      else settle(this.#answer(replyIn(script, reply.value, index), request));
    }
  }

  #answer(value: unknown, { call }: WriteRequest): Reply {
    return value instanceof Error
      ? this.#connection.failed(errorOfCall(value, call))
      : answered(value);
  }
}

const areAlike = (one: WriteRequest, other: WriteRequest): boolean =>
  one.script === other.script && one.whileDown === other.whileDown;
