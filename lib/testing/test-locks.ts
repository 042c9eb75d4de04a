import { canonicalKeys } from '../key/index.js';
import type { LockEvents } from '../observe/lock-events.js';
import type { LockService } from '../nest/lock.service.js';
import type { LeaseRequest } from '../store/lock-store.js';
import type { AttemptEnd, OnceReference } from '../store/once-store.js';
import { STRANGER, type TestLockStore } from './test-lock-store.js';

const RECORDED = ['acquired', 'refused', 'lost', 'released', 'detached', 'attached'] as const;

type RecordedEvent = (typeof RECORDED)[number];

/** Fifty years, long enough for any clock of a test: it stands for an owner that does not release. */
const HELD_FOR_MS = 50 * 365 * 24 * 60 * 60 * 1_000;

/** The lease of another owner. */
const stranger = (key: string): LeaseRequest => ({
  keys: [key],
  token: STRANGER,
  ttlMs: HELD_FOR_MS,
});

/** The attempt of that owner at work. */
const attemptOf = (key: string): OnceReference => ({
  ...{ key, token: STRANGER, owner: STRANGER },
  fencingToken: 0,
});

/** One recorded event of a lock. */
export type RecordedLockEvent = {
  readonly [Name in RecordedEvent]: { readonly event: Name } & LockEvents[Name];
}[RecordedEvent];

/**
 * Makes keys of a test look held, lost or unavailable, and records what was locked. After the shutdown of its service
 * only the records can be read; everything else throws.
 */
export class TestLocks {
  readonly #store: TestLockStore;
  readonly #service: LockService;
  readonly #history: RecordedLockEvent[] = [];
  /** The keys of each lock that is held. */
  readonly #held: (readonly string[])[] = [];
  /** The keys that may stay taken after their locks. */
  readonly #used = new Set<string>();
  readonly #strangers = new Set<string>();

  /** @internal */
  constructor(store: TestLockStore, service: LockService) {
    this.#store = store;
    this.#service = service;
    for (const event of RECORDED) {
      service.on(event, (facts) => {
        this.#record({ event, ...facts } as RecordedLockEvent);
      });
    }
    service.on('unavailable', ({ operation, keys }) => {
      if (operation === 'release' || operation === 'detach') this.#ended(keys);
    });
  }

  /** The events of locks since the test began, or since `reset()`, in order. */
  get history(): readonly RecordedLockEvent[] {
    return [...this.#history];
  }

  /**
   * The keys of every lock that was acquired, in order; several keys of one call are joined by a comma. Locks of
   * `runOnce` that found the work done or exhausted are only in `history`.
   */
  get acquired(): readonly string[] {
    return this.#history
      .filter((each) => each.event === 'acquired' && !this.#store.wasIdle(each.fencingToken))
      .map(({ keys }) => keys.join(','));
  }

  /** The keys that the code under test currently holds: none after it has released all. Written as in `acquired`. */
  get held(): readonly string[] {
    return [...new Set(this.#held.map((keys) => keys.join(',')))];
  }

  /** Makes another owner hold the keys from now on. Throws when one is held already: then it holds none of them. */
  async hold(...keys: readonly string[]): Promise<void> {
    this.#refuseClosed();
    const taken: string[] = [];
    for (const key of canonicalKeys(keys)) {
      const { status } = await this.#store.acquire(stranger(key));
      if (status !== 'granted' || this.#strangers.has(key)) {
        if (taken.length > 0) await this.free(...taken);
        throw new Error(`"${key}" cannot be held by another owner: it is held already.`);
      }
      this.#strangers.add(key);
      taken.push(key);
    }
  }

  /**
   * Releases keys that are held through `hold`, `lose` or `beginWork`: the given ones, or all. Callers that wait for
   * them are woken.
   */
  async free(...keys: readonly string[]): Promise<void> {
    this.#refuseClosed();
    for (const key of keys.length > 0 ? keys : [...this.#strangers]) {
      if (!this.#strangers.delete(key))
        throw new Error(`"${key}" is not held through hold(), lose() or beginWork().`);
      await this.#store.release(stranger(key));
    }
  }

  /**
   * Makes the code under test lose the lock of a key at once: another owner holds it until `free`. Throws when the code
   * does not hold it.
   */
  async lose(key: string): Promise<void> {
    this.#refuseClosed();
    if (!this.#service.lose(key))
      throw new Error(`"${key}" is not held by the code under test, so it cannot lose it.`);
    this.#strangers.add(key);
    this.#store.seize(stranger(key));
  }

  /**
   * Makes another owner begin work that is to be done once (`runOnce`, `@RunOnce`). Callers that ask for it wait, and
   * find it `busy` when their wait is over. `free` ends it as if that owner had died: the next caller takes over, with
   * the next attempt.
   */
  async beginWork(key: string): Promise<void> {
    await this.hold(key);
    const lives = { lifeMs: HELD_FOR_MS, keepMs: HELD_FOR_MS };
    const request = { ...attemptOf(key), attempts: Infinity, ...lives };
    if ((await this.#store.once.begin(request)).status === 'begun') return;
    await this.free(key);
    throw new Error(
      `The work "${key}" is over: it cannot begin. Call reset() or take another key.`,
    );
  }

  /**
   * Makes another owner finish the work, now or after `beginWork`. Callers that ask for it or wait get
   * `done-elsewhere`, with the value, as parsed from JSON, if there is one.
   */
  async finishWork(key: string, value?: unknown): Promise<void> {
    await this.#endWork(key, 'done', value === undefined ? undefined : JSON.stringify(value));
  }

  /**
   * Makes other owners use up all attempts at the work, now or after `beginWork`. Callers that ask for it get
   * `exhausted`.
   */
  async exhaustWork(key: string, lastError?: string): Promise<void> {
    await this.#endWork(key, 'final', lastError);
  }

  /** Makes the store stop replying: for the given keys, or for all. */
  fail(...keys: readonly string[]): void {
    this.#refuseClosed();
    this.#store.fail(keys.length > 0 ? keys : undefined);
  }

  /** Makes the store reply again. */
  recover(): void {
    this.#store.recover();
  }

  /**
   * Prepares the next test: deletes the history and the records of work, and ends outages. It frees what `hold`, `lose`
   * and `beginWork` hold, and what stays taken after a lock (`@CronLock`, `minHold`, `release: 'on-expiry'`).
   */
  async reset(): Promise<void> {
    this.recover();
    await this.free();
    await this.#freeKept();
    this.#store.forgetWork();
    this.#history.length = 0;
  }

  async #freeKept(): Promise<void> {
    const held = new Set(this.#held.flat());
    for (const key of this.#used) {
      if (held.has(key)) continue;
      this.#used.delete(key);
      const [found] = await this.#store.admin.look([key]);
      for (const { token } of found?.holders ?? [])
        await this.#store.release({ keys: [key], token });
    }
  }

  async #endWork(key: string, end: AttemptEnd, text: string | undefined): Promise<void> {
    this.#refuseClosed();
    if (!this.#strangers.has(key)) await this.beginWork(key);
    const ended = { attempt: 1, end, text, lifeMs: HELD_FOR_MS };
    await this.#store.once.finish({ ...attemptOf(key), ...ended });
    await this.free(key);
  }

  #refuseClosed(): void {
    if (!this.#store.isClosed) return;
    throw new Error(
      'These test locks were closed by app.close() or shutdown(), and their LockService grants no more locks. ' +
        'Make new ones for each application, in beforeEach: createTestLocks(), or app.get(TestLocks) of LockTestingModule.',
    );
  }

  #record(happened: RecordedLockEvent): void {
    this.#history.push(happened);
    const { event, keys } = happened;
    if (event === 'acquired' || event === 'attached') {
      this.#held.push(keys);
      for (const key of keys) this.#used.add(key);
    } else if (event !== 'refused') this.#ended(keys);
  }

  #ended(keys: readonly string[]): void {
    const index = this.#held.findIndex((each) => each.join() === keys.join());
    if (index >= 0) this.#held.splice(index, 1);
  }
}
