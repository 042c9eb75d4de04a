import { OPEN_STORES, type ObservedNode, type ObservedStore } from '../../../observe/nodes.js';
import type { Runtime } from '../../../time/runtime.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  EndingLease,
  ExtendOutcome,
  LeaseRenewal,
  LeaseRequest,
  LeaseStore,
  LinePlace,
  LockStore,
  ReleaseListener,
  ReleaseOutcome,
  StoreHealth,
} from '../../lock-store.js';
import type { RedisSource } from '../client/redis-client.js';
import type { RenewalVote } from '../node/extend.js';
import { RedisAdminStore } from '../node/redis-admin-store.js';
import { openAll } from '../node/redis-store.js';
import type { RedisNodeOptions } from '../node/server.js';
import { evenNumberProblem, Members, situationOf } from './members.js';
import { poll, quorumOf } from './poll.js';
import { QuorumAcquire } from './quorum-acquire.js';
import { QuorumSubscriber } from './quorum-subscriber.js';
import { StandingLeases, type Standing } from './standing-leases.js';
import { Voter } from './voter.js';
import { extendOutcome, mergedKey, releaseOutcome } from './votes.js';

/**
 * Exclusive locks on a majority of independent Redis masters: Redlock (redis.io, "Distributed locks with Redis"), with fencing tokens that
 * hold across the majority.
 */
export class QuorumStore implements LeaseStore, Pick<LockStore, 'admin'>, ObservedStore {
  readonly isPlainFirst: boolean;
  readonly admin: RedisAdminStore;
  readonly #options: RedisNodeOptions;
  readonly #voters: readonly Voter[];
  readonly #members: Members;
  readonly #quorum: number;
  readonly #runtime: Runtime;
  readonly #subscriber: QuorumSubscriber;
  readonly #standing: StandingLeases;
  readonly #acquire: QuorumAcquire;

  /** @throws LockConfigurationError when one server is listed twice */
  constructor(sources: readonly RedisSource[], options: RedisNodeOptions, runtime: Runtime) {
    const voters: readonly Voter[] = sources.map(
      (source) =>
        new Voter(source, options, runtime, {
          situation: () => situationOf(voters),
          onIdentified: () => {
            this.#members.setTwinsAside();
          },
        }),
    );
    this.isPlainFirst = options.restartGuard === undefined;
    this.#options = options;
    this.#runtime = runtime;
    this.#voters = voters;
    this.#quorum = quorumOf(voters.length);
    this.#members = new Members(voters);
    this.#members.expectDifferent('name');
    this.admin = new RedisAdminStore(voters, this.#quorum, (key, found) =>
      mergedKey(key, found, voters.length),
    );
    this.#subscriber = new QuorumSubscriber(voters, runtime);
    this.#standing = new StandingLeases(runtime, options.nodeTimeoutMs, (standing) => {
      void this.#bringWhereMissing(standing);
    });
    this.#acquire = new QuorumAcquire(voters, this.#standing);
  }

  /** @throws LockConfigurationError when one server is listed under two names, or cannot have the restart guard */
  async open(): Promise<void> {
    const problem = evenNumberProblem(this.#voters.length);
    if (problem !== undefined) this.#options.warn(problem);
    try {
      OPEN_STORES.add(this);
      await openAll(this.#voters, this.#options);
      this.#members.expectDifferent('run');
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    return this.#acquire.acquire(request, this.#now());
  }

  async extend(
    leases: readonly LeaseRenewal[],
    onDecided: (index: number, outcome: ExtendOutcome) => void = () => undefined,
  ): Promise<readonly ExtendOutcome[]> {
    const sentAt = this.#now();
    for (const { token } of leases) {
      const standing = this.#standing.held(token);
      if (standing !== undefined) standing.askedAt = sentAt;
    }
    const decided = leases.map((): ExtendOutcome | undefined => undefined);
    const { outcome: outcomes, complete } = await poll(
      this.#voters,
      this.#quorum,
      (voter) => voter.extend(leases),
      (answers, awaited) => {
        decided.forEach((known, index) => {
          if (known !== undefined) return;
          const votes = answers.map((each) => each?.[index]);
          const outcome = extendOutcome(votes, awaited, this.#voters);
          decided[index] = outcome;
          if (outcome !== undefined) onDecided(index, outcome);
        });
        return decided.every((outcome) => outcome !== undefined) ? decided : undefined;
      },
    );
    void complete.then((votes) => {
      leases.forEach((lease, index) => {
        const votesOnIt = votes.map((each) => each[index]);
        this.#renewed(lease, sentAt + lease.ttlMs, outcomes[index]?.status, votesOnIt);
      });
    });
    return outcomes;
  }

  /**
   * Removes a lost lease from the nodes that may still have it. Brings a lease that a majority has just confirmed to the
   * nodes that have lost it. Otherwise each restart of a node would take a vote away from a lease that is held for long.
   */
  #renewed(
    lease: LeaseRenewal,
    untilMs: number,
    outcome: ExtendOutcome['status'] | undefined,
    votes: readonly (RenewalVote | undefined)[],
  ): void {
    if (outcome === 'lost') this.#standing.end(lease.token);
    // Released meanwhile: nothing may come after that.
    const standing = this.#standing.held(lease.token);
    if (outcome === 'extended' && standing !== undefined) {
      standing.lease = lease;
      standing.untilMs = untilMs;
      standing.lastToken = lease.fencingToken;
    }
    this.#voters.forEach((voter, index) => {
      const vote = votes[index];
      if (vote?.status !== 'lost') {
        if (outcome === 'lost') voter.remove(lease);
        return;
      }
      // A stolen one is mostly a vote of a caller that died while asking, or returns it.
      const isMissing = vote.reason === 'stolen' || outcome === 'extended';
      if (isMissing && standing !== undefined) voter.bring(standing);
    });
  }

  /**
   * Does what a renewal would do, without a new end: for a lease that is not renewed, and for keys that stay taken after their release.
   */
  async #bringWhereMissing(standing: Standing): Promise<void> {
    const votes = await Promise.all(this.#voters.map((voter) => voter.has(standing)));
    const status = extendOutcome(votes, 0, this.#voters)?.status;
    // An operator may have freed its keys. A lease that is held, its renewal or its release ends.
    if (status === 'lost' && standing.state === 'kept') this.#standing.end(standing.lease.token);
    if (status !== 'extended') return;
    this.#voters.forEach((voter, index) => {
      if (votes[index]?.status === 'lost') voter.bring(standing);
    });
  }

  async release(lease: EndingLease, lastToken?: number, keepMs = 0): Promise<ReleaseOutcome> {
    const sentAt = this.#now();
    const standing = this.#standing.end(lease.token);
    const isPlain = lease.isPlain === true && standing?.isBrought === false;
    const ending = { ...lease, isPlain };
    const { outcome, complete } = await poll(
      this.#voters,
      this.#quorum,
      (voter) => voter.release(ending, lastToken, keepMs),
      (answers, awaited) => releaseOutcome(answers, awaited, this.#voters),
    );
    if (outcome.status === 'unavailable') return outcome;
    const untilMs = sentAt + keepMs;
    const isKept = outcome.status === 'released' && keepMs > 0;
    const kept: Standing | undefined = isKept
      ? {
          lease: { ...lease, ttlMs: keepMs },
          lastToken: lastToken ?? standing?.lastToken ?? 0,
          untilMs,
          askedAt: sentAt,
          state: 'kept',
          isBrought: false,
        }
      : undefined;
    if (kept !== undefined) this.#standing.add(kept);
    void complete.then((answers) => {
      this.#voters.forEach((voter, index) => {
        const status = answers[index]?.status;
        if (status === 'unavailable') voter.remove(lease, Math.max(0, untilMs - this.#now()));
        // One that does not have it would give the key away with the loss of one node more.
        if (status !== 'released' && kept !== undefined) voter.bring(kept);
      });
    });
    return outcome;
  }

  listen(listener: ReleaseListener, onDeaf?: () => void): Promise<'listening' | 'polling'> {
    return this.#subscriber.open(listener, onDeaf);
  }

  async leave(lease: LeaseRequest, line: LinePlace): Promise<void> {
    await poll(
      this.#voters,
      this.#quorum,
      (voter) => voter.leave(lease, line),
      (_, awaited) => awaited === 0 || undefined,
    );
  }

  async health(withinMs?: number): Promise<StoreHealth> {
    const byNode = await Promise.all(this.#voters.map((voter) => voter.health(withinMs)));
    const well = byNode.filter(({ hasQuorum }) => hasQuorum);
    return {
      nodes: byNode.flatMap(({ nodes }) => nodes),
      quorum: this.#quorum,
      hasQuorum: well.length >= this.#quorum,
    };
  }

  get nodes(): readonly ObservedNode[] {
    return this.#voters;
  }

  get nodesMissing(): number {
    const granting = this.#voters.filter(
      ({ nodesMissing, twin }) => nodesMissing === 0 && twin === undefined,
    );
    return Math.max(0, this.#quorum - granting.length);
  }

  async close(): Promise<void> {
    OPEN_STORES.delete(this);
    this.#standing.close();
    await Promise.all(this.#voters.map((voter) => voter.close()));
    this.#subscriber.close();
  }

  #now(): number {
    return this.#runtime.now().monotonicMs;
  }
}
