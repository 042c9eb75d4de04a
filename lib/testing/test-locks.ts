import { canonicalKeys } from '../key/index.js';
import type { LockEventName, LockEvents } from '../lock.events.js';
import type { LockService } from '../lock.service.js';
import type { TestLockStore } from './test-lock-store.js';

/** One thing that happened to a lock. */
export type RecordedLockEvent = {
  readonly [Name in LockEventName]: { readonly event: Name } & LockEvents[Name];
}[LockEventName];

/** Long enough for any test: it stands for somebody who does not let go. */
const HELD_FOR_MS = 60 * 60 * 1_000;

/** In a test: makes keys look held, lost or unavailable, and tells what was locked. */
export class TestLocks {
  readonly #store: TestLockStore;
  readonly #service: LockService;
  readonly #history: RecordedLockEvent[] = [];
  readonly #strangers = new Map<string, string>();

  constructor(store: TestLockStore, service: LockService) {
    this.#store = store;
    this.#service = service;
    for (const event of ['acquired', 'refused', 'lost', 'released'] as const) {
      service.on(event, (facts) => this.#history.push({ event, ...facts } as RecordedLockEvent));
    }
  }

  /** What happened to locks since the test began, or since `clear()`, in order. */
  get history(): readonly RecordedLockEvent[] {
    return [...this.#history];
  }

  /** The keys of every lock that was acquired, in order; several keys of one call are joined by a comma. */
  get acquired(): readonly string[] {
    return this.#history
      .filter(({ event }) => event === 'acquired')
      .map(({ keys }) => keys.join(','));
  }

  /** Somebody else holds the keys from now on. Throws when one is held already. */
  async hold(...keys: readonly string[]): Promise<void> {
    for (const key of canonicalKeys(keys)) {
      const token = `stranger:${key}`;
      const request = { keys: [key], token, ttlMs: HELD_FOR_MS, standInLine: false };
      const outcome = await this.#store.acquire(request);
      if (outcome.status !== 'granted')
        throw new Error(`"${key}" cannot be held by somebody else: it is ${outcome.status}.`);
      this.#strangers.set(key, token);
    }
  }

  /** Those who hold keys through `hold` let go: of the keys given, or of all. Whoever waits for them is woken. */
  async free(...keys: readonly string[]): Promise<void> {
    for (const key of keys.length > 0 ? keys : [...this.#strangers.keys()]) {
      const token = this.#strangers.get(key);
      if (token === undefined) throw new Error(`"${key}" is not held through hold().`);
      this.#strangers.delete(key);
      await this.#store.release({ keys: [key], token });
    }
  }

  /** The code under test loses the lock of a key at once, as if somebody else had got it. Throws when it does not hold it. */
  lose(key: string): void {
    if (!this.#service.lose(key))
      throw new Error(`"${key}" is not held by the code under test, so it cannot lose it.`);
  }

  /** The store stops answering: for the keys given, or altogether. */
  fail(...keys: readonly string[]): void {
    this.#store.fail(keys.length > 0 ? keys : undefined);
  }

  /** The store answers again. */
  recover(): void {
    this.#store.recover();
  }

  /** Forgets the history, ends outages, and frees what `hold` holds: for the next test. */
  async reset(): Promise<void> {
    this.recover();
    await this.free();
    this.#history.length = 0;
  }
}
