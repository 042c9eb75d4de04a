import { LockConfigurationError, LockStoreUnavailableError } from '../errors.js';
import { quoteKeys } from '../errors/quote-keys.js';
import type {
  AcquireOutcome,
  LinePlace,
  LockStore,
  TransferOutcome,
  TransferRequest,
  Unavailable,
  UpgradeOutcome,
} from '../store/lock-store.js';
import { suffices, tokenIn } from '../store/owner-token.js';
import type { Scheduler } from '../time/scheduler.js';
import { transferOf } from './detach.js';
import type { Lease } from './lease.js';
import type { LeaseRegistry } from './lease-registry.js';
import type { Renewals } from './renewals.js';

interface Dependencies {
  readonly store: LockStore;
  readonly scheduler: Scheduler;
  readonly leases: LeaseRegistry;
  readonly renewals: Renewals;
  /** Why there are no upgrades, where there are none. */
  readonly noUpgrades: string;
  readonly present: <E>(error: E) => E;
  /** Throws unless the lease is held now. */
  readonly assertHeld: (lease: Lease) => void;
}

/** Changes the mode of leases. One lease has one pending request at a time, renewals included. */
export class ModeChanges {
  readonly #deps: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  /** @throws LockConfigurationError for a lease that can never be upgraded, or waits for that already */
  assertUpgradeable(lease: Lease): void {
    const { store, noUpgrades } = this.#deps;
    if (lease.mode === 'exclusive') return;
    if (lease.mode !== 'upgradeable') throw new LockConfigurationError(notUpgradeable(lease));
    if (store.upgrade === undefined) throw new LockConfigurationError(noUpgrades);
    if (lease.upgrading !== undefined) throw new LockConfigurationError(waitsAlready(lease));
  }

  /**
   * Asks the store to make an upgradeable lease exclusive. It stays as it is where others hold one of its keys.
   *
   * @throws LockLostError
   */
  async askToUpgrade(lease: Lease, line: LinePlace | undefined): Promise<AcquireOutcome> {
    const { store, leases } = this.#deps;
    const outcome = await this.#exchange(lease, async (): Promise<UpgradeOutcome> => {
      const { keys, token, ttlMs } = lease;
      return (await store.upgrade?.({ keys, token, ttlMs, line })) ?? UNKNOWN;
    });
    if (outcome.status === 'lost') {
      await this.#examine(lease);
      return UNKNOWN;
    }
    lease.isUnsure = outcome.status === 'unavailable' && outcome.sent !== false;
    if (outcome.status === 'granted' && !lease.isOver) {
      leases.rename(lease, () => {
        lease.upgraded(outcome.fencingToken);
      });
    }
    return outcome;
  }

  /** An upgrade came to nothing. The store may have carried it out nevertheless: then the lease is made upgradeable there, too. */
  async stayUpgradeable(lease: Lease): Promise<void> {
    while (lease.renewing !== undefined) await lease.renewing;
    if (lease.isOver || (lease.mode !== 'exclusive' && !lease.isUnsure)) return;
    await this.#weaken(lease, 'upgradeable');
  }

  /** Lets others hold the keys beside a lease that is exclusive, or upgradeable. */
  async downgrade(lease: Lease, to: Weaker): Promise<void> {
    this.#refuse(lease, to);
    if (lease.mode === to) return;
    let outcome = await this.#weaken(lease, to);
    if (outcome.status === 'lost') {
      await this.#examine(lease);
      outcome = await this.#weaken(lease, to);
    }
    if (outcome.status === 'transferred') return;
    this.#deps.assertHeld(lease);
    const { nodes } = outcome.status === 'unavailable' ? outcome : UNKNOWN;
    const failed = { operation: 'downgrade', keys: lease.keys, nodes } as const;
    throw this.#deps.present(new LockStoreUnavailableError(failed));
  }

  #refuse(lease: Lease, to: Weaker): void {
    const { store, noUpgrades, assertHeld } = this.#deps;
    const { keys, mode, upgrading } = lease;
    assertHeld(lease);
    transferOf(store);
    if (upgrading !== undefined) throw new LockConfigurationError(waitsAlready(lease));
    if (to === 'upgradeable' && store.upgrade === undefined)
      throw new LockConfigurationError(noUpgrades);
    if (!suffices(mode, to))
      throw new LockConfigurationError(
        `The lock of ${quoteKeys(keys)} cannot be downgraded to '${to}': it is held as '${mode}', which is no more than that.`,
      );
  }

  /** The lease counts as weaker from the moment at which the store is asked, whatever it replies. */
  async #weaken(lease: Lease, to: Weaker): Promise<TransferOutcome> {
    const { store, leases } = this.#deps;
    return this.#exchange(lease, async () => {
      const { keys, ttlMs, tenure, fencingToken } = lease;
      // It may be unknown whether an upgrade was carried out: the store finds the lease under this token, or under the
      // new one.
      const token = to === 'upgradeable' ? tokenIn('exclusive', lease.token) : lease.token;
      leases.rename(lease, () => {
        lease.changeMode(to);
      });
      const request: TransferRequest = {
        ...{ keys, token, to: lease.token, ttlMs, lastToken: tenure.lastToken },
        ...{ phase: fencingToken, holder: 'this service' },
      };
      const outcome = await transferOf(store)(request);
      if (outcome.status !== 'unavailable' || outcome.sent === false || lease.isOver)
        return outcome;
      // It changes nothing where the first one was carried out.
      return transferOf(store)(request);
    }).then((outcome) => {
      lease.isUnsure = outcome.status !== 'transferred';
      return outcome;
    });
  }

  /** Nothing else is sent for the lease meanwhile, so no answer is about another mode than it seems. What is granted is a renewal, too. */
  async #exchange<Outcome extends { readonly status: string }>(
    lease: Lease,
    ask: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const { scheduler, renewals, assertHeld } = this.#deps;
    while (lease.renewing !== undefined) await lease.renewing;
    assertHeld(lease);
    const sentAt = scheduler.runtime.now();
    const { ttlMs } = lease;
    const asking = ask();
    lease.renewing = asking;
    lease.renewalSent(sentAt, ttlMs);
    const outcome = await asking;
    lease.renewing = undefined;
    if (lease.isOver) return outcome;
    const now = scheduler.runtime.now();
    const isNew = outcome.status === 'granted' || outcome.status === 'transferred';
    // What comes after the old deadline revives nothing.
    if (isNew && lease.validForMsAt(now) > 0) lease.renewed(sentAt, ttlMs);
    renewals.add(lease, now);
    return outcome;
  }

  /**
   * The store does not know it. A renewal shows whether it is lost: a server that has forgotten it may put it back
   * (`restartGuard`).
   */
  async #examine(lease: Lease): Promise<void> {
    if (!lease.isOver) await this.#deps.renewals.extend(lease, lease.ttlMs);
    this.#deps.assertHeld(lease);
  }
}

type Weaker = 'shared' | 'upgradeable';

const UNKNOWN: Unavailable = {
  status: 'unavailable',
  nodes: [{ node: 'store', kind: 'error', message: 'does not know the lock' }],
  transient: true,
};

const notUpgradeable = ({ keys, mode }: Lease): string =>
  `The lock of ${quoteKeys(keys)} cannot be upgraded: it is held as '${mode}', and of two such holders who both wait for the other, none would ` +
  "ever be alone. Acquire it with mode: 'upgradeable', of which there is one at a time.";

const waitsAlready = ({ keys }: Lease): string =>
  `The lock of ${quoteKeys(keys)} waits to be upgraded already: await that upgrade(), or abort its signal, before you change its mode again.`;
