import { elapsedMs, type Clock, type Instant } from '../../time/clock.js';
import type { FoundOnce } from '../admin-store.js';
import type {
  AttemptEnd,
  BeginOutcome,
  BeginRequest,
  FinishOutcome,
  FinishRequest,
  KeepRequest,
  OnceReference,
  OnceStore,
} from '../once-store.js';
import { SweepPace } from '../sweep-pace.js';

interface Entry {
  readonly state: 'running' | 'failed' | 'done' | 'exhausted';
  readonly attempt: number;
  readonly owner: string;
  readonly end?: AttemptEnd;
  readonly text?: string | undefined;
  readonly lifeMs: number;
}

/** Expired entries are swept when the table has doubled since the last sweep, and not before it has this size. */
const SMALLEST_SWEEP = 1_024;

/** What is known of work that is to be done once, in the memory of this process. */
export class MemoryOnceStore implements OnceStore {
  readonly #clock: Clock;
  readonly #holds: (key: string, token: string) => boolean;
  readonly #entries = new Map<string, Entry & { readonly since: Instant }>();
  readonly #pace = new SweepPace(SMALLEST_SWEEP);

  /** @param holds whether a token holds the lock of a key */
  constructor(clock: Clock, holds: (key: string, token: string) => boolean) {
    this.#clock = clock;
    this.#holds = holds;
  }

  begin(request: BeginRequest): Promise<BeginOutcome> {
    return Promise.resolve(this.#begin(request));
  }

  keep(request: KeepRequest): Promise<FinishOutcome> {
    const { key, owner, attempt, lifeMs } = request;
    const isOurs = this.#isOurs(request);
    if (isOurs) this.#put(key, { state: 'running', attempt, owner, lifeMs });
    return Promise.resolve({ status: isOurs ? 'accepted' : 'superseded' });
  }

  finish(request: FinishRequest): Promise<FinishOutcome> {
    const { key, owner, end, text, lifeMs } = request;
    if (!this.#isOurs(request)) {
      const known = this.#valid(key);
      const isRepeated = known?.owner === owner && known.end === end;
      return Promise.resolve({ status: isRepeated ? 'accepted' : 'superseded' });
    }
    // The caller that returns it may not know its number.
    const begun = this.#valid(key)?.attempt ?? 1;
    const attempt = end === 'returned' ? begun - 1 : request.attempt;
    const state = end === 'done' ? 'done' : end === 'final' ? 'exhausted' : 'failed';
    this.#put(key, { state, attempt, owner, end, text, lifeMs });
    return Promise.resolve({ status: 'accepted' });
  }

  forgetAll(): void {
    this.#entries.clear();
  }

  forget(key: string): boolean {
    return this.#entries.delete(key);
  }

  keys(): Iterable<string> {
    return [...this.#entries.keys()].filter((key) => this.#valid(key) !== undefined);
  }

  /** For operators. */
  found(key: string): FoundOnce | undefined {
    const known = this.#valid(key);
    if (known === undefined) return undefined;
    const { state, attempt: attempts, text, since, lifeMs } = known;
    return { state, attempts, text, remainingMs: lifeMs - elapsedMs(since, this.#clock.now()) };
  }

  #begin({ key, token, owner, attempts, lifeMs, keepMs }: BeginRequest): BeginOutcome {
    const known = this.#valid(key);
    const attempt = known?.attempt ?? 0;
    if (known?.state === 'done') return { status: 'done', attempts: attempt, value: known.text };
    if (known?.state === 'exhausted')
      return { status: 'exhausted', attempts: attempt, error: known.text };
    if (!this.#holds(key, token)) return { status: 'lost', attempts: attempt };
    if (known?.owner === owner)
      return known.state === 'running'
        ? { status: 'begun', attempt }
        : { status: 'lost', attempts: attempt };
    if (attempt >= attempts) {
      // A process that died left no error.
      const text = known?.text;
      this.#put(key, { state: 'exhausted', attempt, owner, end: 'final', text, lifeMs: keepMs });
      return { status: 'exhausted', attempts: attempt, error: text };
    }
    this.#put(key, { state: 'running', attempt: attempt + 1, owner, lifeMs });
    return { status: 'begun', attempt: attempt + 1 };
  }

  /** An attempt is its owner's until another one begins; where nothing is known, the holder's of the lock. */
  #isOurs({ key, token, owner }: OnceReference): boolean {
    const known = this.#valid(key);
    if (known === undefined) return this.#holds(key, token);
    return known.state === 'running' && known.owner === owner;
  }

  #put(key: string, entry: Entry): void {
    this.#entries.set(key, { ...entry, since: this.#clock.now() });
    if (!this.#pace.isDue(this.#entries.size)) return;
    for (const each of [...this.#entries.keys()]) this.#valid(each);
    this.#pace.swept(this.#entries.size);
  }

  #valid(key: string): (Entry & { readonly since: Instant }) | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (elapsedMs(entry.since, this.#clock.now()) < entry.lifeMs) return entry;
    this.#entries.delete(key);
    return undefined;
  }
}
