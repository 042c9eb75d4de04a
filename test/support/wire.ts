import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** What the bytes on a wire meet at the moment. */
export interface WireConditions {
  readonly delayMs: number;
  /** Present while the wire is held; resolves when it is let go. */
  readonly passable: Promise<void> | undefined;
}

/** Carries bytes, and the end of the connection, from one socket to the other: late if it must be, never out of order. */
export class Wire {
  readonly #to: Socket;
  readonly #conditions: WireConditions;
  readonly #cut = new AbortController();
  #delivered: Promise<void> = Promise.resolve();

  constructor(from: Socket, to: Socket, conditions: WireConditions) {
    this.#to = to;
    this.#conditions = conditions;
    from.on('data', (bytes: Buffer) => {
      this.#deliver(() => to.write(bytes));
    });
    from.once('end', () => {
      this.#deliver(() => to.end());
    });
    // A connection that broke off has no 'end'; to end twice does no harm.
    from.once('close', () => {
      this.#deliver(() => to.end());
    });
    to.once('close', () => {
      this.#cut.abort(); // so that no timer outlives the connection
    });
  }

  #deliver(action: () => void): void {
    const dueAt = performance.now() + this.#conditions.delayMs;
    this.#delivered = this.#delivered.then(async () => {
      const earlyByMs = dueAt - performance.now();
      if (earlyByMs > 0)
        await sleep(earlyByMs, undefined, { signal: this.#cut.signal }).catch(() => undefined);
      while (this.#conditions.passable) await this.#conditions.passable;
      if (!this.#to.destroyed) action();
    });
  }
}
