import { BriefMap } from '../../collections/brief-map.js';
import type { Clock } from '../../time/clock.js';
import type { FoundPlace } from '../admin-store.js';
import type { LinePlace } from '../lock-store.js';
import { LONGEST_CLAIM_MS } from '../claim.js';

/** A place in the line of a key. */
export interface Waiter {
  readonly token: string;
  /** When it came, in µs of the monotonic clock; no two are the same. */
  readonly ticket: number;
  readonly claimMs: number;
}

/** The waiting callers of each key, in the order in which they came. */
export class MemoryLines {
  readonly #clock: Clock;
  /** For each key with waiting callers: by ticket. */
  readonly #lines = new BriefMap<string, Waiter[]>();
  #lastTicket = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  keys(): Iterable<string> {
    return this.#lines.keys();
  }

  /** For operators. */
  found(key: string): readonly FoundPlace[] {
    const { wallMs, monotonicMs } = this.#clock.now();
    return this.of(key).map(({ token, ticket }) => ({
      token,
      channel: '',
      sinceMs: wallMs - monotonicMs + ticket / 1_000,
    }));
  }

  of(key: string): readonly Waiter[] {
    return this.#lines.get(key) ?? [];
  }

  /** In the place it had, or at the end. */
  stand(key: string, token: string, { ticket, ttlMs }: LinePlace): number {
    const line = this.#lines.get(key) ?? [];
    const known = line.find((waiter) => waiter.token === token);
    if (known !== undefined) return known.ticket;
    if (ticket === undefined) this.#lastTicket = Math.max(this.#lastTicket + 1, this.#nowUs());
    const waiter = {
      token,
      ticket: ticket ?? this.#lastTicket,
      claimMs: Math.min(ttlMs, LONGEST_CLAIM_MS),
    };
    line.push(waiter);
    this.#lines.set(
      key,
      line.sort((a, b) => a.ticket - b.ticket),
    );
    return waiter.ticket;
  }

  /** A caller no longer waits. */
  forget(key: string, token: string): void {
    const line = this.#lines.get(key)?.filter((waiter) => waiter.token !== token);
    if (line === undefined) return;
    if (line.length === 0) this.#lines.delete(key);
    else this.#lines.set(key, line);
  }

  #nowUs(): number {
    return Math.floor(this.#clock.now().monotonicMs * 1_000);
  }
}
