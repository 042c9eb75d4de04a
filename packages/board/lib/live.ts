import {
  defer,
  expand,
  finalize,
  ReplaySubject,
  share,
  switchMap,
  timer,
  type Observable,
} from 'rxjs';
import type { Clock } from './clock.js';

/** How often the store is asked while a client looks, in ms. */
const EVERY_MS = 1_000;

/** Where a look takes long, because a server has millions of keys, the pause after it is longer by this factor. */
const REST = 4;

/** Looks that several clients share: one look for all that want the same, repeated while any client is subscribed. */
export class LiveLooks<T> {
  readonly #take: (wanted: string) => Promise<T>;
  readonly #clock: Clock;
  readonly #shared = new Map<string, Observable<T>>();

  /** @param take must not reject */
  constructor(take: (wanted: string) => Promise<T>, clock: Clock) {
    this.#take = take;
    this.#clock = clock;
  }

  of(wanted: string): Observable<T> {
    const known = this.#shared.get(wanted);
    if (known !== undefined) return known;
    let pauseMs = EVERY_MS;
    const look = defer(async () => {
      const before = this.#clock.now().monotonicMs;
      const seen = await this.#take(wanted);
      pauseMs = Math.max(EVERY_MS, REST * (this.#clock.now().monotonicMs - before));
      return seen;
    });
    const made = look.pipe(
      expand(() => timer(pauseMs).pipe(switchMap(() => look))),
      finalize(() => this.#shared.delete(wanted)),
      // Who comes later sees the last look, and does not wait for the next one.
      share({ connector: () => new ReplaySubject(1) }),
    );
    this.#shared.set(wanted, made);
    return made;
  }
}
