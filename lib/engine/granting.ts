import { LockError, LockNotAcquiredError, LockStoreUnavailableError } from '../errors.js';
import { quoteKeys } from '../errors/quote-keys.js';
import { canonicalKeys, nameOfKeys } from '../key/index.js';
import { withStackOf } from '../lease/call-site.js';
import { LockHandle } from '../lease/lock-handle.js';
import {
  lockNameOf,
  LockRequest,
  type CallOrigin,
  type LockOrigin,
} from '../lease/lock-request.js';
import {
  resolveAcquireOptions,
  type ResolvedAcquireOptions,
  type RunOptions,
} from '../options/acquire-options.js';
import { enterNested, Scope } from '../sections/scope.js';
import { Section } from '../sections/section.js';
import { waitsFor } from '../sections/waits-for.js';
import { elapsedMs, type Instant } from '../time/clock.js';
import type { Components } from './compose.js';

const nothingIsHeld = (): boolean => false;

type Keys = string | readonly string[];

/** Where a section is opened from. */
export interface ScopeOrigin extends CallOrigin {
  readonly parent?: Section | undefined;
  /** What a nested call does when a sibling has its turn. */
  readonly whenBusy?: 'wait' | 'refuse';
}

/** Takes locks for callers: bare ones, and ones that open a section. */
export class Granting {
  readonly #owner: object;
  readonly #parts: Components;

  /** @param owner the lock service; sections of another one have nothing to do with each other */
  constructor(owner: object, parts: Components) {
    this.#owner = owner;
    this.#parts = parts;
  }

  /** @throws LockKeyError, before it returns a promise, for a key that must not be locked */
  acquire(given: Keys, options: ResolvedAcquireOptions, from: ScopeOrigin): Promise<LockHandle> {
    return this.#observed(
      this.#asked(given, options, from),
      (request) => this.#take(request, 'by hand'),
      (lock) => lock,
    );
  }

  #asked(given: Keys, options: ResolvedAcquireOptions, from: ScopeOrigin): LockRequest {
    const keys = this.#canonical(given);
    this.#parts.reportOutlivedWork?.(
      () => `asked for the lock of ${quoteKeys(keys)}`,
      () => from.site,
    );
    const request = new LockRequest(keys, options, from);
    request.origin ??= originByHand(given);
    return request;
  }

  /** Publishes the call, and that its lock is held, where there are subscribers. */
  #observed<T>(
    request: LockRequest,
    take: (request: LockRequest) => Promise<T>,
    lockOf: (taken: T) => LockHandle,
  ): Promise<T> {
    const { recorder } = this.#parts;
    if (!recorder.isTracing) return take(request);
    return recorder
      .call(request, () => take(request))
      .then((taken) => {
        const { lease, depth } = lockOf(taken);
        if (depth === 1) recorder.holdBegan(lease);
        return taken;
      });
  }

  async #take(request: LockRequest, how: 'by hand' | 'for a section'): Promise<LockHandle> {
    const { runtime, queue, replacing, keeper, forgotten } = this.#parts;
    const since = runtime.now();
    try {
      const from = request.options.replaceWaitMs === undefined ? queue : replacing;
      const lease = await from.acquire(request, this.#isHeldAround(), since);
      const lock = new LockHandle(lease, keeper, how === 'by hand' ? 0 : 1);
      this.#handOut(lock, request, since);
      // Sections end by themselves: only a lock by hand can be forgotten.
      return how === 'by hand' && forgotten.isWatching ? forgotten.watch(lock) : lock;
    } catch (error) {
      throw this.#failure(error, request, since);
    }
  }

  #handOut(lock: LockHandle, { observed }: LockRequest, since: Instant): void {
    if (observed !== undefined) observed.fencingToken = lock.fencingToken;
    const { recorder } = this.#parts;
    if (recorder.isHeard('acquired'))
      recorder.emit('acquired', lock.lease, { waitedMs: this.#waitedMs(since) });
    // The event loop may have been blocked since the grant.
    lock.assertHeld();
  }

  /** What a call that cannot have the lock rejects with. The reason of a signal may be no error. */
  #failure(error: unknown, request: LockRequest, since: Instant): Error {
    const { recorder } = this.#parts;
    if (error instanceof LockNotAcquiredError && recorder.isHeard('refused')) {
      const { retryAfterMs } = error;
      recorder.emit('refused', request, { retryAfterMs, waitedMs: this.#waitedMs(since) });
    }
    if (error instanceof LockStoreUnavailableError)
      recorder.emit('unavailable', request, { operation: 'acquire', nodes: error.nodes });
    return this.#explained(error, request) as Error;
  }

  /** Names the lock in an error, and the place of the call, and says when another try may succeed. */
  #explained(error: unknown, { origin, site }: LockRequest): unknown {
    const { present, sectionTimes } = this.#parts;
    const name = lockNameOf(origin);
    if (error instanceof LockError) error.nameLock(name);
    sectionTimes?.hint(error, name);
    return present(withStackOf(error, site));
  }

  #waitedMs(since: Instant): number {
    return Math.round(elapsedMs(since, this.#parts.runtime.now()));
  }

  open(given: Keys, options: RunOptions, from: ScopeOrigin): Promise<Scope> {
    const resolved = resolveAcquireOptions(options, this.#parts.options);
    // Calls side by side in one section are one caller's: not to wait is not to wait for others.
    const waitMs = (options.wait !== undefined && resolved.waitMs) || Infinity;
    const turnWithinMs = from.whenBusy === 'refuse' ? 0 : waitMs;
    return this.#observed(
      this.#asked(given, resolved, from),
      (request) => this.#open(request, from.parent, turnWithinMs),
      ({ section }) => section.lock,
    );
  }

  async #open(
    request: LockRequest,
    parent: Section | undefined,
    turnWithinMs: number,
  ): Promise<Scope> {
    const { keys, options } = request;
    let waitIsOver: (() => void) | undefined;
    // Most calls stand in no section, and are spared what it takes to look for one.
    if (parent !== undefined) {
      try {
        const turn = { withinMs: turnWithinMs, scheduler: this.#parts.scheduler };
        const nested = await enterNested(this.#owner, request, turn, parent);
        if (nested !== undefined) return nested;
        const sections = options.waitMs > 0 ? parent.enclosing() : [];
        if (sections.length > 0)
          waitIsOver = waitsFor.begin({ owner: this.#owner, keys, mode: options.mode, sections });
      } catch (error) {
        throw this.#explained(error, request);
      }
    }
    try {
      const lock = await this.#take(request, 'for a section');
      return new Scope(new Section(this.#owner, lock, parent), () => releaseOf(lock));
    } finally {
      waitIsOver?.();
    }
  }

  #canonical(keys: Keys): readonly string[] {
    try {
      return canonicalKeys(keys);
    } catch (error) {
      throw this.#parts.present(error);
    }
  }

  /** Tells of a key whether a section around the calling code holds it. */
  #isHeldAround(): (key: string) => boolean {
    const around = Section.current();
    if (around === undefined) return nothingIsHeld;
    return (key) =>
      around.enclosing(this.#owner).some((section) => section.holds(this.#owner, key));
  }
}

/** Makes a handler of rejections: a call that is refused the lock resolves with what it returns. */
export const ifRefused =
  <T>(answer: (refusal: LockNotAcquiredError) => T) =>
  (error: unknown): T => {
    if (error instanceof LockNotAcquiredError) return answer(error);
    throw error;
  };

const origins = new Map<string, LockOrigin>();

/** The origin of a lock by hand, if its key was made by `lockKey`. There are as many as there are such places in the code. */
function originByHand(keys: Keys): LockOrigin | undefined {
  const name = nameOfKeys(keys);
  if (name === undefined) return undefined;
  let origin = origins.get(name);
  if (origin === undefined) {
    origin = Object.defineProperty({}, 'byHand', { value: name });
    origins.set(name, origin);
  }
  return origin;
}

/** A release that the store did not confirm is logged by the keeper, and must not replace what the work returned. */
async function releaseOf(lock: LockHandle): Promise<void> {
  let released: boolean;
  try {
    released = await lock.release();
  } catch {
    return;
  }
  if (!released) lock.assertHeld();
}
