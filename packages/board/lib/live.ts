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

const EVERY_MS = 1_000;

/** What was seen, ready to be sent to all who look. */
export interface Look {
  readonly at: Date;
  /** As JSON. */
  readonly text: string;
  /** Equal for looks that show the same. */
  readonly content: string;
}

/** Looks that several clients share: one look for all that want the same, repeated every second while any client is subscribed. */
export class LiveLooks<T extends { readonly at: Date }> {
  readonly #take: (wanted: string) => Promise<T>;
  readonly #contentOf: (seen: T) => string;
  readonly #shared = new Map<string, Observable<Look>>();

  /** @param take must not reject, and not last for long */
  constructor(take: (wanted: string) => Promise<T>, contentOf: (seen: T) => string) {
    this.#take = take;
    this.#contentOf = contentOf;
  }

  of(wanted: string): Observable<Look> {
    const known = this.#shared.get(wanted);
    if (known !== undefined) return known;
    const look = defer(async () => {
      const seen = await this.#take(wanted);
      return { at: seen.at, text: JSON.stringify(seen), content: this.#contentOf(seen) };
    });
    const made = look.pipe(
      expand(() => timer(EVERY_MS).pipe(switchMap(() => look))),
      finalize(() => this.#shared.delete(wanted)),
      // Who comes later sees the last look, and does not wait for the next one.
      share({ connector: () => new ReplaySubject(1) }),
    );
    this.#shared.set(wanted, made);
    return made;
  }
}
