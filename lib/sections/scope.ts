import { LockLostError, LockNotAcquiredError, LockReentrancyError } from '../errors.js';
import { quoteKeys } from '../errors/quote-keys.js';
import type { LockRequest } from '../lease/lock-request.js';
import { anyOf } from '../queue/on-abort.js';
import type { Scheduler } from '../time/scheduler.js';
import type { Lock } from '../lease/lock.js';
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

  /**
   * Runs work to its end and finishes; the work's own error goes before the loss of the lock, which it then carries as its cause.
   *
   * @param check throws for a value that the work must not return
   */
  async run<T, Token extends number | undefined>(
    work: (lock: Lock<Token>) => T | PromiseLike<T>,
    check: (value: T, lock: Lock) => void,
  ): Promise<T> {
    let value: T;
    this.section.endsWithWork = true;
    try {
      value = await this.section.inside(() => work(this.lock as Lock<Token>));
      check(value, this.lock);
    } catch (error) {
      throw await this.fail(error);
    }
    await this.finish();
    return value;
  }

  /** Waits for nested sections and ends this one. Idempotent. Rejects with a `LockLostError` when the lock was lost. */
  finish(): Promise<void> {
    this.#finished ??= this.#finish();
    return this.#finished;
  }

  async #finish(): Promise<void> {
    const inside = this.section.close();
    if (inside !== undefined) await inside;
    await this.#end();
  }

  /** Finishes after an error, and gives that error back, or the loss that aborted the work. */
  async fail(error: unknown): Promise<unknown> {
    this.section.lock.failed(error);
    try {
      await this.finish();
    } catch (loss) {
      const behind = lossBehind(error);
      if (behind !== undefined) return behind;
      if (error instanceof Error && !(error instanceof LockLostError)) attachCause(error, loss);
    }
    return error;
  }
}

/** Functions of Node that are given `lock.signal` reject with an error of their own, whose cause is the reason of the signal. */
function lossBehind(error: unknown): LockLostError | undefined {
  const { name, cause } = Object(error) as { readonly name?: unknown; readonly cause?: unknown };
  return name === 'AbortError' && cause instanceof LockLostError ? cause : undefined;
}

/** An error keeps the cause that it has. */
function attachCause(error: Error, cause: unknown): void {
  if (error.cause === undefined && Object.isExtensible(error)) error.cause = cause;
}

/** How a nested call waits for its turn. */
interface TurnWait {
  /** 0 does not wait. */
  readonly withinMs: number;
  readonly scheduler: Scheduler;
}

/**
 * The scope of a call that asks for keys which a section around it holds: on its turn, under the same lease.
 * `undefined` when no section does.
 *
 * @throws LockReentrancyError when a section holds some of the keys, or when `reentrant` is false
 * @throws LockNotAcquiredError when its turn does not come within `withinMs`
 * @throws the reason of `signal` when that aborts before its turn
 */
export async function enterNested(
  owner: object,
  request: LockRequest,
  turn: TurnWait,
  inner: Section | undefined,
): Promise<Scope | undefined> {
  const { keys, observed } = request;
  for (const section of inner?.enclosing(owner) ?? []) {
    if (!section.overlaps(keys)) continue;
    if (section.covers(keys) && observed !== undefined) {
      observed.nested = true;
      observed.fencingToken = section.lock.fencingToken;
    }
    const problem = problemOf(request, section);
    if (problem !== undefined)
      throw new LockReentrancyError({
        keys,
        problem: `${quoteKeys(keys)} is requested ${problem}`,
      });
    const leave = await turnOf(section, request, turn);
    const nested = new Section(owner, section.lock.borrow(), inner);
    const scope = new Scope(nested, () => {
      leave();
      nested.lock.assertHeld();
    });
    if (nested.lock.isHeld) return scope;
    leave();
    // Released while it waited for its turn, or lost.
    if (section.isOpen) nested.lock.assertHeld();
    if (observed !== undefined) observed.nested = false;
  }
  return undefined;
}

/** Why a call cannot be nested in a section that holds some of its keys. */
function problemOf({ keys, options }: LockRequest, section: Section): string | undefined {
  const { mode: held, places, keys: heldKeys } = section.lock;
  if (!section.covers(keys))
    return (
      `inside a section that holds only ${quoteKeys(heldKeys)}. ` +
      'Locks that are acquired one after the other can wait for each other indefinitely: acquire all of them in the outer call.'
    );
  if (!options.reentrant)
    return 'with reentrant: false (runOnce always sets it) inside a section that holds it: waiting would never end.';
  if (held === 'exclusive') return undefined;
  if (held !== options.mode)
    return (
      `as '${options.mode}' inside a section that holds it as '${held}', together with other callers. Waiting for them ` +
      `could last indefinitely, because one of them may do the same. Request the mode that you need in the outer call.`
    );
  if (options.places > places)
    return (
      `with ${String(options.places)} places inside a section that holds ${String(places)} of them. Waiting for ` +
      'more could last indefinitely, because other callers may do the same. Take as many as you need in the outer call.'
    );
  return undefined;
}

/** A turn in time. What it waits for may, through an async context that was passed on, be waiting for this very call. */
async function turnOf(
  section: Section,
  { keys, signal }: LockRequest,
  { withinMs, scheduler }: TurnWait,
): Promise<() => void> {
  if (withinMs === Infinity || !section.isBusy) return section.takeTurn(signal);
  const refused = (): LockNotAcquiredError =>
    new LockNotAcquiredError({
      keys,
      retryAfterMs: section.lock.remainingMs,
      waitedMs: withinMs,
      heldHere: {},
    });
  if (withinMs === 0) throw refused();
  const limit = new AbortController();
  const timeout = scheduler.schedule(withinMs, () => {
    limit.abort(refused());
  });
  const ends = anyOf(signal === undefined ? [limit.signal] : [limit.signal, signal]);
  try {
    return await section.takeTurn(ends.signal);
  } finally {
    timeout.cancel();
    ends.unlink();
  }
}
