import { canonicalKeys } from '../key/index.js';
import type { LockEvents } from '../observe/lock-events.js';
import type { LockService } from '../nest/lock.service.js';
import type { AttemptEnd } from '../store/once-store.js';
import type { TestLockStore } from './test-lock-store.js';

type RecordedEvent = 'acquired' | 'refused' | 'lost' | 'released' | 'detached' | 'attached';

const RECORDED: readonly RecordedEvent[] = [
  'acquired',
  'refused',
  'lost',
  'released',
  'detached',
  'attached',
];

/** One thing that happened to a lock. */
export type RecordedLockEvent = {
  readonly [Name in RecordedEvent]: { readonly event: Name } & LockEvents[Name];
}[RecordedEvent];

/**
 * In a test: makes keys look held, lost or unavailable, and tells what was locked. After the shutdown of its service only that can be
 * read: everything else throws.
 */
export class TestLocks {
  readonly #store: TestLockStore;
  readonly #service: LockService;
  readonly #history: RecordedLockEvent[] = [];
  readonly #held = new Map<number, readonly string[]>();
  readonly #strangers = new Set<string>();

  constructor(store: TestLockStore, service: LockService) {
    this.#store = store;
    this.#service = service;
    for (const event of RECORDED) {
      service.on(event, (facts) => {
        this.#record({ event, ...facts } as RecordedLockEvent);
      });
    }
  }

  /** What happened to locks since the test began, or since `reset()`, in order. */
  get history(): readonly RecordedLockEvent[] {
    return [...this.#history];
  }

  /**
   * The keys of every lock that was acquired, in order; several keys of one call are joined by a comma. Without those of `runOnce` that
   * found the work done or exhausted: `history` has them.
   */
  get acquired(): readonly string[] {
    return this.#history
      .filter((each) => each.event === 'acquired' && !this.#store.wasIdle(each.fencingToken))
      .map(({ keys }) => keys.join(','));
  }

  /** The keys that the code under test holds now: none, when it gave everything back. Written as in `acquired`. */
  get held(): readonly string[] {
    return [...this.#held.values()].map((keys) => keys.join(','));
  }

  /** Somebody else holds the keys from now on. Throws when one is held already. */
  async hold(...keys: readonly string[]): Promise<void> {
    this.#refuseClosed();
    for (const key of canonicalKeys(keys)) {
      const { status } = await this.#store.hold(key);
      if (status !== 'granted' || this.#strangers.has(key))
        throw new Error(`"${key}" cannot be held by another owner: it is held already.`);
      this.#strangers.add(key);
    }
  }

  /** Those who hold keys through `hold`, `lose` or `beginWork` let go: of the keys given, or of all. Whoever waits for them is woken. */
  async free(...keys: readonly string[]): Promise<void> {
    this.#refuseClosed();
    for (const key of keys.length > 0 ? keys : [...this.#strangers]) {
      if (!this.#strangers.delete(key))
        throw new Error(`"${key}" is not held through hold(), lose() or beginWork().`);
      await this.#store.free(key);
    }
  }

  /** The code under test loses the lock of a key at once: somebody else holds it, until `free`. Throws when it does not hold it. */
  async lose(key: string): Promise<void> {
    this.#refuseClosed();
    if (!this.#service.lose(key))
      throw new Error(`"${key}" is not held by the code under test, so it cannot lose it.`);
    this.#strangers.add(key);
    this.#store.steal(key);
  }

  /**
   * Somebody else is at work that is to be done once (`runOnce`, `@RunOnce`): whoever asks for it stands by, and finds it `busy` when its
   * wait is over. `free` ends that as if the other one had died; the next one takes over, with the next attempt.
   */
  async beginWork(key: string): Promise<void> {
    await this.hold(key);
    if ((await this.#store.begin(key)) === 'begun') return;
    await this.free(key);
    throw new Error(
      `The work "${key}" is over: it cannot begin. Call reset() or take another key.`,
    );
  }

  /**
   * Somebody else has done the work, now or since `beginWork`: whoever asks for it, or stands by, is told `done-elsewhere`, with the
   * value, as JSON keeps it, if there is one.
   */
  async finishWork(key: string, value?: unknown): Promise<void> {
    await this.#endWork(key, 'done', value === undefined ? undefined : JSON.stringify(value));
  }

  /** Others have tried the work as often as allowed, now or since `beginWork`: whoever asks for it is told `exhausted`. */
  async exhaustWork(key: string, lastError?: string): Promise<void> {
    await this.#endWork(key, 'final', lastError);
  }

  /** The store stops answering: for the keys given, or altogether. */
  fail(...keys: readonly string[]): void {
    this.#refuseClosed();
    this.#store.fail(keys.length > 0 ? keys : undefined);
  }

  /** The store answers again. */
  recover(): void {
    this.#store.recover();
  }

  /** Forgets the history and what has become of work, ends outages, and frees what `hold`, `lose` and `beginWork` hold: for the next test. */
  async reset(): Promise<void> {
    this.recover();
    await this.free();
    this.#store.forgetWork();
    this.#history.length = 0;
  }

  async #endWork(key: string, end: AttemptEnd, text: string | undefined): Promise<void> {
    this.#refuseClosed();
    if (!this.#strangers.has(key)) await this.beginWork(key);
    await this.#store.finish(key, end, text);
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
    const begins = happened.event === 'acquired' || happened.event === 'attached';
    if (begins) this.#held.set(happened.fencingToken, happened.keys);
    else if (happened.event !== 'refused') this.#held.delete(happened.fencingToken);
  }
}
