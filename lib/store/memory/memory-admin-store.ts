import { RecentMap } from '../../collections/recent-map.js';
import type {
  AdminStore,
  FoundInstance,
  FoundKey,
  FoundOnce,
  InstanceRecord,
} from '../admin-store.js';
import { elapsedMs, type Clock, type Instant } from '../../time/clock.js';
import type { MemoryKeys } from './memory-keys.js';

const MOST_NOTES = 1_000;

/** At most this many keys are remembered with the caller that came last to replace their holders. */
const MOST_REPLACED = 10_000;

interface Report {
  readonly record: InstanceRecord;
  readonly at: Instant;
  readonly lifeMs: number;
}

/** For operators: the services of this process that share the store. */
export class MemoryAdminStore implements AdminStore {
  readonly isHearing = true;
  readonly #clock: Clock;
  readonly #keys: MemoryKeys;
  readonly #look: (key: string) => FoundKey;
  readonly #reports = new Map<string, Report>();
  readonly #notes: string[] = [];
  readonly #newest = new RecentMap<string, number>(MOST_REPLACED);
  #arrivals = 0;
  readonly #listeners = new Set<(text: string) => void>();

  /** @param look finds what is known of a key, or throws for an outage */
  constructor(clock: Clock, keys: MemoryKeys, look: (key: string) => FoundKey) {
    this.#clock = clock;
    this.#keys = keys;
    this.#look = look;
  }

  listen(onMessage: (text: string) => void): () => void {
    const listener = (text: string): void => {
      onMessage(text);
    };
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  address(): string {
    return 'memory';
  }

  report(record: InstanceRecord, lifeMs: number): Promise<void> {
    this.#reports.set(record.id, { record, lifeMs, at: this.#clock.now() });
    return Promise.resolve();
  }

  retract(id: string): Promise<void> {
    this.#reports.delete(id);
    return Promise.resolve();
  }

  instances(): Promise<readonly FoundInstance[]> {
    const now = this.#clock.now();
    const found = [...this.#reports.values()].flatMap(({ record, at, lifeMs }) => {
      const seenMsAgo = elapsedMs(at, now);
      return seenMsAgo < lifeMs ? [{ ...record, seenMsAgo }] : [];
    });
    return Promise.resolve(found.sort((a, b) => b.startedAtMs - a.startedAtMs));
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    yield this.#keys.used().filter((key) => key.startsWith(prefix));
  }

  async look(keys: readonly string[]): Promise<readonly FoundKey[]> {
    return keys.map((key) => ({ ...this.#look(key), newest: this.#newest.get(key) }));
  }

  tell(_address: string, text: string): Promise<void> {
    for (const listener of this.#listeners) listener(text);
    return Promise.resolve();
  }

  async arrive(key: string): Promise<number> {
    this.#look(key);
    this.#arrivals += 1;
    this.#newest.set(key, this.#arrivals);
    return this.#arrivals;
  }

  forgetOnce(key: string, seen: Pick<FoundOnce, 'state' | 'attempts'>): Promise<boolean> {
    const found = this.#keys.of(key);
    const isSeen = found.once?.state === seen.state && found.once.attempt === seen.attempts;
    if (isSeen) found.once = undefined;
    return Promise.resolve(isSeen);
  }

  note(entry: string): Promise<void> {
    this.#notes.unshift(entry);
    this.#notes.splice(MOST_NOTES);
    return Promise.resolve();
  }

  notes(count: number): Promise<readonly string[]> {
    return Promise.resolve(this.#notes.slice(0, count));
  }
}
