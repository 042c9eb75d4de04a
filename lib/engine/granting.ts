import { LockNotAcquiredError } from '../errors.js';
import { canonicalKeys } from '../key/index.js';
import { withStackOf, type CallSite } from '../lease/call-site.js';
import { HeldLock } from '../lease/held-lock.js';
import {
  resolveAcquireOptions,
  type ResolvedAcquireOptions,
  type RunOptions,
} from '../options/acquire-options.js';
import { enterNested, Scope } from '../sections/scope.js';
import { Section } from '../sections/section.js';
import { WaitsFor } from '../sections/waits-for.js';
import { elapsedMs } from '../time/clock.js';
import type { Parts } from './compose.js';

/** Of all services of the process: what they wait for can close one circle. */
const waitsFor = new WaitsFor();

const nothingIsHeld = (): boolean => false;

type Keys = string | readonly string[];

/** Where a section is opened from. */
export interface ScopeOrigin {
  readonly parent?: Section | undefined;
  readonly site?: CallSite | undefined;
  /** Ends the wait for the lock, in place of that of the options. */
  readonly signal?: AbortSignal | undefined;
  /** What a nested call does when a sibling has its turn. */
  readonly whenBusy?: 'wait' | 'refuse';
}

/** Takes locks for callers: bare ones, and ones that open a section. */
export class Granting {
  readonly #owner: object;
  readonly #parts: Parts;

  /** @param owner the lock service; sections of another one have nothing to do with each other */
  constructor(owner: object, parts: Parts) {
    this.#owner = owner;
    this.#parts = parts;
  }

  /** @throws LockKeyError, before it returns a promise, for a key that must not be locked */
  acquire(
    given: Keys,
    options: ResolvedAcquireOptions,
    site: CallSite | undefined,
  ): Promise<HeldLock> {
    return this.#take(this.#canonical(given), options, site);
  }

  async #take(
    keys: readonly string[],
    options: ResolvedAcquireOptions,
    site: CallSite | undefined,
  ): Promise<HeldLock> {
    const { runtime, queue, events, keeper, present } = this.#parts;
    const since = runtime.now();
    const waitedMs = (): number => Math.round(elapsedMs(since, runtime.now()));
    try {
      const lease = await queue.acquire({ keys, ...options, site }, this.#isHeldAround());
      const { fencingToken } = lease;
      if (events.isHeard('acquired'))
        events.emit('acquired', { keys, fencingToken, waitedMs: waitedMs() });
      const lock = new HeldLock(lease, keeper);
      // The event loop may have been blocked since the grant.
      lock.assertHeld();
      return lock;
    } catch (error) {
      if (error instanceof LockNotAcquiredError) {
        const { retryAfterMs } = error;
        events.emit('refused', { keys, retryAfterMs, waitedMs: waitedMs() });
      }
      throw present(withStackOf(error, site));
    }
  }

  async open(given: Keys, options: RunOptions, origin: ScopeOrigin): Promise<Scope> {
    const keys = this.#canonical(given);
    const { parent, site, signal } = origin;
    const known = resolveAcquireOptions(options, this.#parts.options);
    const resolved = signal === undefined ? known : { ...known, signal };
    let waitIsOver: (() => void) | undefined;
    // Most calls stand in no section, and are spared what it takes to look for one.
    if (parent !== undefined) {
      try {
        const nested = await this.#nest(keys, { options, resolved }, origin);
        if (nested !== undefined) return nested;
        const sections = resolved.waitMs > 0 ? parent.enclosing() : [];
        if (sections.length > 0) {
          const { mode } = resolved;
          waitIsOver = waitsFor.begin({ owner: this.#owner, keys, mode, sections });
        }
      } catch (error) {
        throw this.#parts.present(withStackOf(error, site));
      }
    }
    try {
      const lock = await this.#take(keys, resolved, site);
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

  #nest(
    keys: readonly string[],
    {
      options,
      resolved,
    }: { readonly options: RunOptions; readonly resolved: ResolvedAcquireOptions },
    { parent, whenBusy }: ScopeOrigin,
  ): Promise<Scope | undefined> {
    // Calls side by side in one section are one caller's: not to wait is not to wait for others.
    const waitMs = (options.wait !== undefined && resolved.waitMs) || Infinity;
    const turnWithinMs = whenBusy === 'refuse' ? 0 : waitMs;
    const { scheduler } = this.#parts;
    return enterNested(this.#owner, keys, { ...resolved, turnWithinMs, scheduler }, parent);
  }
}

/** A release that the store did not confirm is logged by the keeper, and must not replace what the work returned. */
async function releaseOf(lock: HeldLock): Promise<void> {
  let released: boolean;
  try {
    released = await lock.release();
  } catch {
    return;
  }
  if (!released) lock.assertHeld();
}
