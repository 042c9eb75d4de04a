import { LockLostError, LockReentrancyError } from '../errors.js';
import { BorrowedLock } from './borrowed-lock.js';
import type { Lock } from './lock.js';
import { Section } from './section.js';

/** A section and what ends it: leaving the outer one, or giving the lock back. */
export class Scope {
  readonly section: Section;
  readonly #end: () => Promise<void> | void;
  #finished: Promise<void> | undefined;

  /** @param end throws a `LockLostError` when the lock was not held to the end. */
  constructor(section: Section, end: () => Promise<void> | void) {
    this.section = section;
    this.#end = end;
  }

  get lock(): Lock {
    return this.section.lock;
  }

  /** Runs work to its end and finishes; the work's own error goes before the loss of the lock, which it then carries as its cause. */
  async run<T>(work: (lock: Lock) => T | PromiseLike<T>): Promise<T> {
    let value: T;
    try {
      value = await this.section.inside(() => work(this.lock));
    } catch (error) {
      throw await this.fail(error);
    }
    await this.finish();
    return value;
  }

  /** Waits for nested sections and ends this one. Idempotent. Rejects with a `LockLostError` when the lock was lost. */
  finish(): Promise<void> {
    this.#finished ??= this.section.close().then(() => this.#end());
    return this.#finished;
  }

  /** Finishes after an error, and gives that error back. */
  async fail(error: unknown): Promise<unknown> {
    try {
      await this.finish();
    } catch (loss) {
      if (error instanceof Error && !(error instanceof LockLostError)) attachCause(error, loss);
    }
    return error;
  }
}

/** An error keeps the cause that it has. */
function attachCause(error: Error, cause: unknown): void {
  if (error.cause === undefined && Object.isExtensible(error)) error.cause = cause;
}

/**
 * The scope of a call that asks for keys which a section around it holds: on its turn, under the same lease. `undefined` when none
 * does.
 *
 * @throws LockReentrancyError when it holds some of the keys, or when `reentrant` is false; the reason of `signal` when that aborts
 * before its turn.
 */
export async function enterNested(
  owner: object,
  keys: readonly string[],
  { reentrant, signal }: { readonly reentrant: boolean; readonly signal: AbortSignal | undefined },
  inner: Section | undefined,
): Promise<Scope | undefined> {
  const list = keys.map((key) => `"${key}"`).join(', ');
  for (const section of inner?.enclosing(owner) ?? []) {
    if (section.covers(keys)) {
      if (!reentrant) {
        const problem = `${list} is asked for with reentrant: false inside a section that holds it: waiting would never end.`;
        throw new LockReentrancyError({ keys, problem });
      }
      const leave = await section.takeTurn(signal);
      const nested = new Section(owner, new BorrowedLock(section.lock), inner);
      const scope = new Scope(nested, () => {
        leave();
        nested.lock.assertHeld();
      });
      if (nested.lock.isHeld) return scope;
      // Lost while it waited for its turn.
      leave();
      nested.lock.assertHeld();
    } else if (section.overlaps(keys)) {
      const problem =
        `${list} is asked for inside a section that holds only ${section.lock.keys.map((key) => `"${key}"`).join(', ')}. ` +
        'Locks taken one after the other can wait for each other for ever: take all of them in the outer call.';
      throw new LockReentrancyError({ keys, problem });
    }
  }
  return undefined;
}
