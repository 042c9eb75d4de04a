import { hostname, userInfo } from 'node:os';
import { LockConfigurationError, LockStoreUnavailableError, type Intervention } from '../errors.js';
import type { FoundKey } from '../store/admin-store.js';
import type { LockStore } from '../store/lock-store.js';
import { makerIn } from '../store/owner-token.js';
import type { Presence } from './presence.js';

/** Why, and at whose wish. The holder is told both, and the audit log of `LockAdmin` keeps them. */
export interface InterventionRequest {
  /** 1 to 500 characters. */
  readonly reason: string;
  /** Who did it, 1 to 200 characters. Default: user and host of this process. */
  readonly by?: string;
}

/** The longest TTL of a lock that is released: some of other software have none. */
const LONGEST_MS = 60_000;

/** @throws LockConfigurationError for one that says nothing */
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
 * Ends leases, whoever has them. Their holders are told before the keys are free: a renewal would find that out first, and could not say
 * who did it.
 */
export class Interventions {
  readonly #store: LockStore;
  readonly #presence: Presence | undefined;

  constructor(store: LockStore, presence: Presence | undefined) {
    this.#store = store;
    this.#presence = presence;
  }

  /** By their tokens, so that nobody is hit who got a key after it was looked at. Rejects for an outage. */
  async release(found: readonly FoundKey[], intervention: Intervention): Promise<void> {
    await this.#tell(found, intervention);
    await this.#end(found);
  }

  /**
   * Ends the leases of those who hold a key now; whether there are any. Not whoever's it is by then: a holder that was told gives the key to
   * the next in line at once. Who cannot be told learns of it at the next renewal.
   */
  async endHoldersOf(key: string, intervention: Intervention): Promise<boolean> {
    const found = await this.#holdersOf(key);
    if (found.length === 0) return false;
    // Perhaps the names of instances must not be read. Their leases end all the same.
    await this.#tell(found, intervention).catch(() => undefined);
    await this.#end(found);
    return true;
  }

  async #holdersOf(key: string): Promise<readonly FoundKey[]> {
    try {
      const found = (await this.#store.admin?.look([key])) ?? [];
      return found.filter(({ holders }) => holders.length > 0);
    } catch {
      // An outage, or not allowed: the release that follows says so where it matters.
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
   * Over several masters a release fails where a master is away and its holder, who was told, has released some of the others itself: then
   * no majority says `released`, and the key is free all the same.
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
