import { hostname, userInfo } from 'node:os';
import { LockConfigurationError, LockStoreUnavailableError, type Intervention } from '../errors.js';
import type { LeaseEnding } from '../lease/lease-keeper.js';
import type { FoundHolder, FoundInstance } from '../store/admin-store.js';
import type { LockStore, Unavailable } from '../store/lock-store.js';
import { digestOf, makerIn } from '../store/owner-token.js';
import { isForbidden, type Presence } from './presence.js';

/**
 * The reason of an intervention, and its operator. The holder is notified of both, and the audit log of `LockAdmin`
 * keeps them.
 */
export interface InterventionRequest {
  /** 1 to 500 characters. */
  readonly reason: string;
  /** The operator, 1 to 200 characters. Default: user and host of this process. */
  readonly by?: string;
}

/** The longest TTL of a lock that is released: some of other software have none. */
const LONGEST_MS = 60_000;

/** At most this many are ended by one message: longer ones are not delivered. */
const MOST_AT_ONCE = 200;

/** What could forge lines of a log. */
const CONTROL = /[\p{Cc}\u2028\u2029]/u;

/** @throws LockConfigurationError for a reason or an operator that is empty, too long or not one line */
export function checkedIntervention({
  reason,
  by = whoWeAre(),
}: InterventionRequest): Intervention {
  for (const [name, text, most] of [
    ['reason', reason, 500],
    ['by', by, 200],
  ] as const)
    if (typeof text !== 'string' || text.trim() === '' || text.length > most || CONTROL.test(text))
      throw new LockConfigurationError(
        `A forced release needs "${name}", a text of 1 to ${String(most)} characters in one line: ` +
          'the holder is notified, and the audit log keeps it. ' +
          "Write release('order:42', { reason: 'stuck since 3 am' }).",
      );
  return { by, reason };
}

function* inParts(targets: readonly Target[]): Generator<readonly Target[]> {
  for (let from = 0; from < targets.length; from += MOST_AT_ONCE)
    yield targets.slice(from, from + MOST_AT_ONCE);
}

function whoWeAre(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    // A container whose user has no name.
    return hostname();
  }
}

/** A lease on a key that an operator ends. */
export interface Target {
  readonly key: string;
  readonly holder: FoundHolder;
  /** The fencing token that the operator saw; missing if it was unknown. */
  readonly fencingToken?: number | undefined;
  /** The last fencing token of the key. */
  readonly lastToken?: number | undefined;
}

/** `'not-held'`: it ended by itself, or another caller of its process has it by now. */
export type Ending = { readonly status: 'ended' } | { readonly status: 'not-held' } | Unavailable;

const ENDED = { status: 'ended' } as const;
const NOT_HELD = { status: 'not-held' } as const;

/**
 * Ends leases, whichever process holds them. Their holders are notified before the keys are free: a renewal would
 * detect the loss first, and could not name the operator.
 */
export class Interventions {
  readonly #store: LockStore;
  readonly #presence: Presence;

  constructor(store: LockStore, presence: Presence) {
    this.#store = store;
    this.#presence = presence;
  }

  /**
   * Ends these leases and no others: a later holder of the key keeps it. Returns what became of each. Never rejects for
   * an outage.
   */
  async end(targets: readonly Target[], intervention: Intervention): Promise<readonly Ending[]> {
    const told = await this.#tell(targets, intervention);
    const endedTokens = new Set(
      targets.flatMap(({ holder }, index) => (told[index] === 'ended' ? [holder.token] : [])),
    );
    const endings: Ending[] = [];
    for (const [index, target] of targets.entries()) {
      const isTold = endedTokens.has(target.holder.token);
      const isKept = told[index] === 'passed-on';
      endings.push(isKept ? NOT_HELD : await this.#endInStore(target, isTold));
    }
    return endings;
  }

  /**
   * Ends these leases when their work has ended, or after `waitMs`. A lease that its process holds no more stays: its key
   * is kept for a time. Resolves with whether one was ended.
   *
   * @param hasLeft aborts when the newer call no longer wants the key
   */
  async replace(
    targets: readonly Target[],
    intervention: Intervention,
    waitMs: number,
    hasLeft: AbortSignal,
  ): Promise<boolean> {
    const told = await this.#tell(targets, intervention, { replaceWaitMs: waitMs, hasLeft });
    // The newer call has failed, and no holder may lose its lock for that.
    if (hasLeft.aborted) return false;
    for (const [index, target] of targets.entries())
      if (told[index] === undefined) await this.#endInStore(target, false);
    return told.some((ending) => ending !== 'unknown');
  }

  /**
   * Ends the leases that hold a key now. Returns whether there were any.
   *
   * @throws LockStoreUnavailableError when the store does not reply
   */
  async endHoldersOf(key: string, intervention: Intervention): Promise<boolean> {
    const [found] = await this.#store.admin.look([key]);
    const { holders = [], strays = [], fencingToken: lastToken } = found ?? {};
    const targets = [...holders, ...strays].map((holder) => ({ key, holder, lastToken }));
    for (const ending of await this.end(targets, intervention))
      if (ending.status === 'unavailable')
        throw new LockStoreUnavailableError({
          ...{ operation: 'release', keys: [key], nodes: ending.nodes },
        });
    return targets.length > 0;
  }

  /** @param isTold its holder has ended it, and may have released it before this process does */
  async #endInStore({ key, holder, lastToken }: Target, isTold: boolean): Promise<Ending> {
    const ttlMs = Math.min(holder.remainingMs, LONGEST_MS);
    const lease = { keys: [key], token: holder.token, ttlMs };
    const outcome = await this.#store.release(lease, lastToken);
    if (outcome.status === 'released') return ENDED;
    if (outcome.status === 'not-held') return isTold ? ENDED : NOT_HELD;
    // Over several masters, the notified holder may have released some of them itself: no majority replies `released`.
    const [found] = await this.#store.admin.look([key]).catch(() => []);
    const isGone = found?.holders.every(({ token }) => token !== holder.token);
    return isGone === true ? ENDED : outcome;
  }

  /** Returns what the processes of the holders have done, in the order of the targets; `undefined` if there was no answer. */
  async #tell(
    targets: readonly Target[],
    intervention: Intervention,
    replacing?: { readonly replaceWaitMs: number; readonly hasLeft: AbortSignal },
  ): Promise<readonly (LeaseEnding | undefined)[]> {
    if (targets.length === 0) return [];
    const { replaceWaitMs, hasLeft } = replacing ?? {};
    const makers = new Set(targets.map(({ holder }) => makerIn(holder.token)));
    const instances = await this.#instances(replacing !== undefined);
    const theirs = instances.filter(({ id }) => makers.has(id));
    const told = [...inParts(targets)].map(async (some) => {
      const leases = some.map(({ key, holder, fencingToken }) => ({
        ...{ key, digest: digestOf(holder.token), fencingToken },
      }));
      const question = { about: 'end', leases, intervention, replaceWaitMs } as const;
      const answers = await this.#presence.ask(theirs, question, hasLeft);
      return some.map(({ holder }, index) => {
        const known = [...answers.values()].flatMap(({ endings }) => endings?.[index] ?? []);
        const own = answers.get(makerIn(holder.token) ?? '')?.endings?.[index];
        return known.find((ending) => ending !== 'unknown') ?? own;
      });
    });
    return (await Promise.all(told)).flat();
  }

  /**
   * Whom to notify. A user who may not read that ends leases anyway; an operator does so in an outage, too. A request that
   * failed is made once more.
   */
  async #instances(forReplace: boolean): Promise<readonly FoundInstance[]> {
    const { admin } = this.#store;
    try {
      return await admin.instances().catch(() => admin.instances());
    } catch (error) {
      const isRefused = error instanceof LockStoreUnavailableError && error.nodes.some(isForbidden);
      if (forReplace && !isRefused) throw error;
      return [];
    }
  }
}
