import {
  LockConfigurationError,
  LockNotAcquiredError,
  LockStoreUnavailableError,
} from '../errors.js';
import { quoteKeys } from '../errors/quote-keys.js';
import type { LockEventHub } from '../observe/lock-events.js';
import type {
  AcquireOutcome,
  LinePlace,
  LockStore,
  TransferOutcome,
  TransferRequest,
  Unavailable,
  UpgradeOutcome,
} from '../store/lock-store.js';
import { suffices } from '../store/owner-token.js';
import { elapsedMs, type Instant } from '../time/clock.js';
import type { Scheduler } from '../time/scheduler.js';
import { transferOf } from './detach.js';
import type { Lease } from './lease.js';
import type { LeaseRegistry } from './lease-registry.js';
import type { Renewals } from './renewals.js';

interface Dependencies {
  readonly store: LockStore;
  readonly scheduler: Scheduler;
  readonly events: LockEventHub;
  readonly leases: LeaseRegistry;
  readonly renewals: Renewals;
  /** Why there are no upgrades, where there are none. */
  readonly noUpgrades: string;
  readonly present: <E>(error: E) => E;
  /** Told that others may hold the keys of a lease beside it. */
  readonly weakened: (lease: Lease) => void;
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
    let to = '';
    const ask = async (): Promise<UpgradeOutcome> => {
      const { keys, token, ttlMs } = lease;
      to = lease.nextUpgrade();
      return (await store.upgrade?.({ keys, token, to, ttlMs, line })) ?? UNKNOWN;
    };
    const outcome = await this.#exchange(lease, ask, (answer) => {
      lease.isUnsure = isUnsureAfter(lease, answer);
      if (answer.status !== 'granted' || lease.isOver) return;
      leases.rename(lease, () => {
        lease.upgraded(to, answer.fencingToken);
      });
    });
    if (outcome.status !== 'lost') return outcome;
    await this.#examine(lease);
    return UNKNOWN;
  }

  /**
   * An upgrade was given up or failed. The store may have carried it out nevertheless: then the lease is made
   * upgradeable there, too.
   *
   * @param fencingToken the one that it had before
   */
  async stayUpgradeable(lease: Lease, fencingToken: number): Promise<void> {
    while (lease.renewing !== undefined && !lease.isOver) await lease.renewing;
    if (lease.isOver || (lease.mode !== 'exclusive' && !lease.isUnsure)) return;
    await this.#weaken(lease, 'upgradeable', () => {
      lease.notUpgraded(fencingToken);
    });
  }

  /** The store replies again, and may know the lease in a stronger mode: it is asked for the present mode. Never rejects. */
  async settle(lease: Lease): Promise<void> {
    const { mode, isUnsure, isOver, upgrading } = lease;
    // The end of a pending upgrade settles the mode.
    if (!isUnsure || isOver || upgrading !== undefined) return;
    if (mode === 'shared' || mode === 'upgradeable')
      await this.#weaken(lease, mode).catch(() => undefined); // it was lost: that is what is reported
  }

  reportUpgrade(lease: Lease, since: Instant): void {
    const { events } = this.#deps;
    if (!lease.isOver && events.isHeard('upgraded'))
      events.emit('upgraded', { ...lease.subject, waitedMs: this.#waitedMs(since) });
  }

  /** As the refusal of a call for the exclusive lock. */
  reportFailedUpgrade(lease: Lease, since: Instant, error: unknown): void {
    const { events } = this.#deps;
    const { fencingToken: _, ...subject } = { ...lease.subject, mode: 'exclusive' } as const;
    if (error instanceof LockNotAcquiredError && events.isHeard('refused')) {
      const { retryAfterMs } = error;
      events.emit('refused', { ...subject, retryAfterMs, waitedMs: this.#waitedMs(since) });
    }
    if (error instanceof LockStoreUnavailableError && events.isHeard('unavailable'))
      events.emit('unavailable', { ...subject, operation: 'upgrade', nodes: error.nodes });
  }

  #waitedMs(since: Instant): number {
    return Math.round(elapsedMs(since, this.#deps.scheduler.runtime.now()));
  }

  /** Admits other holders of the keys beside a lease that is exclusive, or upgradeable. */
  async downgrade(lease: Lease, to: Weaker): Promise<void> {
    this.#refuse(lease, to);
    const { mode: previousMode } = lease;
    if (previousMode === to) return;
    let outcome = await this.#weaken(lease, to);
    if (outcome.status === 'lost') {
      await this.#examine(lease);
      outcome = await this.#weaken(lease, to);
    }
    const { events } = this.#deps;
    // It counts as downgraded, whatever the store replied.
    if (!lease.isOver && events.isHeard('downgraded'))
      events.emit('downgraded', { ...lease.subject, previousMode });
    if (outcome.status === 'transferred') return;
    this.#deps.assertHeld(lease);
    const { nodes } = outcome.status === 'unavailable' ? outcome : UNKNOWN;
    if (events.isHeard('unavailable'))
      events.emit('unavailable', { ...lease.subject, operation: 'downgrade', nodes });
    const { keys, lockName: lock } = lease;
    const failed = { operation: 'downgrade', keys, nodes, lock } as const;
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
        `The lock of ${quoteKeys(keys)} cannot be downgraded to '${to}': it is held as '${mode}', which is not a stronger mode.`,
      );
  }

  /** The lease counts as weaker from the moment at which the store is asked, whatever it replies. */
  async #weaken(
    lease: Lease,
    to: Weaker,
    change = (): void => {
      lease.changeMode(to);
    },
  ): Promise<TransferOutcome> {
    const { store, leases } = this.#deps;
    const ask = async (): Promise<TransferOutcome> => {
      const { keys, ttlMs, tenure } = lease;
      // It may be unknown whether an upgrade was carried out: the store finds the lease under this token, or under a
      // weaker one.
      const token = lease.isUnsure ? lease.strongestToken : lease.token;
      leases.rename(lease, change);
      const { fencingToken } = lease;
      const request: TransferRequest = {
        ...{ keys, token, to: lease.token, ttlMs, lastToken: tenure.lastToken },
        phase: fencingToken,
      };
      let outcome = await transferOf(store)(request);
      // It changes nothing where the first one was carried out.
      if (outcome.status === 'unavailable' && outcome.sent !== false && !lease.isOver)
        outcome = await transferOf(store)(request);
      return outcome;
    };
    const outcome = await this.#exchange(lease, ask, ({ status }) => {
      lease.isUnsure = status !== 'transferred';
    });
    if (outcome.status === 'transferred') this.#deps.weakened(lease);
    return outcome;
  }

  /**
   * Nothing else is sent for the lease meanwhile, so no answer is about another mode than it seems. What is granted is a
   * renewal, too.
   *
   * @param learn applies the answer to the lease, before the code continues that waits for it
   */
  async #exchange<Outcome extends { readonly status: string }>(
    lease: Lease,
    ask: () => Promise<Outcome>,
    learn: (outcome: Outcome) => void,
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
    learn(outcome);
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

/** Whether the store may know a lease in another mode than its holder, after it said this to an upgrade. */
function isUnsureAfter({ keys, isUnsure }: Lease, answer: UpgradeOutcome): boolean {
  switch (answer.status) {
    case 'granted':
      return false;
    case 'held':
      // Keys in several slots of a Cluster are upgraded one slot after the other.
      return keys.length > 1;
    case 'unavailable':
      return isUnsure || answer.sent !== false;
    case 'lost':
      return true;
  }
}

const UNKNOWN: Unavailable = {
  status: 'unavailable',
  nodes: [{ node: 'store', kind: 'error', message: 'does not know the lock' }],
  transient: true,
};

const notUpgradeable = ({ keys, mode }: Lease): string =>
  `The lock of ${quoteKeys(keys)} cannot be upgraded: it is held as '${mode}', and two such holders could wait for each other ` +
  "indefinitely. Acquire it with mode: 'upgradeable', which only one caller can have at a time.";

const waitsAlready = ({ keys }: Lease): string =>
  `The lock of ${quoteKeys(keys)} waits to be upgraded already: await that upgrade(), or abort its signal, before you change its mode again.`;
