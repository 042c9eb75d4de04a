import { hostname, userInfo } from 'node:os';
import { LockConfigurationError, LockStoreUnavailableError, type Intervention } from '../errors.js';
import type { FoundKey } from '../store/admin-store.js';
import type { LockStore } from '../store/lock-store.js';
import { makerIn } from '../store/owner-token.js';
import type { Presence } from './presence.js';

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

/** @throws LockConfigurationError for a reason or an operator that is empty or too long */
export function checkedIntervention({
  reason,
  by = whoWeAre(),
}: InterventionRequest): Intervention {
  for (const [name, text, most] of [
    ['reason', reason, 500],
    ['by', by, 200],
  ] as const)
    if (typeof text !== 'string' || text.trim() === '' || text.length > most)
      throw new LockConfigurationError(
        `A forced release needs "${name}", a text of 1 to ${String(most)} characters: the holder is notified, and the audit log keeps it. ` +
          "Write release('order:42', { reason: 'stuck since 3 am' }).",
      );
  return { by, reason };
}

function whoWeAre(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    // A container whose user has no name.
    return hostname();
  }
}

/**
 * Ends leases, whichever process holds them. Their holders are notified before the keys are free: a renewal would
 * detect the loss first, and could not name the operator.
 */
export class Interventions {
  readonly #store: LockStore;
  readonly #presence: Presence | undefined;

  constructor(store: LockStore, presence: Presence | undefined) {
    this.#store = store;
    this.#presence = presence;
  }

  /** Ends leases by their tokens, so that a later holder of the key keeps it. Rejects for an outage. */
  async release(found: readonly FoundKey[], intervention: Intervention): Promise<void> {
    await this.#tell(found, intervention);
    await this.#end(found);
  }

  /**
   * Ends the leases that hold a key now. Returns whether there are any. A later holder keeps the key: a notified holder
   * passes it to the next in line at once. A holder that cannot be notified detects the loss at its next renewal.
   */
  async endHoldersOf(key: string, intervention: Intervention): Promise<boolean> {
    const found = await this.#holdersOf(key);
    if (found.length === 0) return false;
    // The names of instances may not be readable. Their leases end anyway.
    await this.#tell(found, intervention).catch(() => undefined);
    await this.#end(found);
    return true;
  }

  async #holdersOf(key: string): Promise<readonly FoundKey[]> {
    try {
      const found = (await this.#store.admin?.look([key])) ?? [];
      return found.filter(({ holders }) => holders.length > 0);
    } catch {
      // An outage, or a missing right: the release that follows reports it if it matters.
      return [];
    }
  }

  async #end(found: readonly FoundKey[]): Promise<void> {
    for (const { key, holders, fencingToken } of found) {
      for (const { token, remainingMs } of holders) {
        const ttlMs = Math.min(remainingMs, LONGEST_MS);
        const outcome = await this.#store.release({ keys: [key], token, ttlMs }, fencingToken);
        if (outcome.status === 'unavailable' && (await this.#mayHold(key, token)))
          throw new LockStoreUnavailableError({
            ...{ operation: 'release', keys: [key], nodes: outcome.nodes },
          });
      }
    }
  }

  /**
   * Over several masters a release fails if a master is away and the notified holder has released some of the others
   * itself. Then no majority replies `released`, although the key is free.
   */
  async #mayHold(key: string, token: string): Promise<boolean> {
    try {
      const [found] = (await this.#store.admin?.look([key])) ?? [];
      return found?.holders.some((holder) => holder.token === token) ?? false;
    } catch {
      return true;
    }
  }

  async #tell(found: readonly FoundKey[], intervention: Intervention): Promise<void> {
    const { admin } = this.#store;
    const tokens = found.flatMap(({ holders }) => holders.map(({ token }) => token));
    if (admin === undefined || this.#presence === undefined || tokens.length === 0) return;
    const makers = new Set(tokens.map(makerIn));
    const instances = await admin.instances();
    const theirs = instances.filter(({ id }) => makers.has(id));
    await this.#presence.tellReleased(theirs, tokens, intervention);
  }
}
