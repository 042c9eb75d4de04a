import { systemRuntime, type Runtime } from '../../../time/runtime.js';
import { Scheduler } from '../../../time/scheduler.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  EndingLease,
  ExtendOutcome,
  LeaseRenewal,
  LeaseRequest,
  LinePlace,
  LockStore,
  ReleaseListener,
  ReleaseOutcome,
  SetLimitOutcome,
  SeveralLeases,
  StoreHealth,
  TransferOutcome,
  TransferRequest,
  WriteOutcome,
  WriteRequest,
} from '../../lock-store.js';
import type { OnceStore } from '../../once-store.js';
import type { CredentialsProvider } from '../client/login.js';
import { redisSource, type RedisLocation } from '../client/redis-source.js';
import { acquireTogetherAt } from '../node/acquire.js';
import { extendAt } from '../node/extend.js';
import { onceAt } from '../node/once.js';
import { releaseAt } from '../node/release.js';
import type { RedisNodeOptions } from '../node/server.js';
import { writeAt } from '../node/write.js';
import { RedisNode } from '../node/redis-node.js';
import { setLimitScript } from '../scripts/set-limit.js';
import { transferScript } from '../scripts/transfer.js';
import { QuorumSubscriber } from './quorum-subscriber.js';
import { LeftOvers } from './left-overs.js';
import { evenNumberProblem, Members, situationOf } from './members.js';
import { poll, quorumOf } from './poll.js';
import { QuorumAcquire } from './quorum-acquire.js';
import { RedisAdminStore } from './redis-admin-store.js';
import { StandingLeases, type Standing } from './standing-leases.js';
import { extendOutcome, releaseOutcome } from './votes.js';

export interface RedisLockStoreOptions extends RedisNodeOptions {
  /** One for each node that votes. */
  readonly redis: readonly RedisLocation[];
  /** What its connections log in with. Default: what the location says at that moment. */
  readonly credentials?: CredentialsProvider | undefined;
  readonly runtime?: Runtime;
  /** How a location becomes a client. Default: with ioredis. */
  readonly sourceOf?: typeof redisSource;
}

/**
 * Locks on a majority of independent Redis masters: Redlock (redis.io, "Distributed locks with Redis"), with fencing tokens that hold
 * across the majority. With one node, standalone, behind Sentinel or a Cluster, it is the same with a majority of one.
 */
export class RedisLockStore implements LockStore {
  readonly admin: RedisAdminStore;
  // The only node has these: over several there are exclusive locks, and nothing else.
  readonly once: OnceStore;
  readonly transfer: (request: TransferRequest) => Promise<TransferOutcome>;
  readonly write: (request: WriteRequest) => Promise<WriteOutcome>;
  readonly setLimit: (key: string, limit: number | undefined) => Promise<SetLimitOutcome>;
  readonly #options: RedisNodeOptions;
  readonly #nodes: readonly RedisNode[];
  readonly #members: Members;
  readonly #quorum: number;
  readonly #scheduler: Scheduler;
  readonly #subscriber: QuorumSubscriber;
  readonly #leftOvers: LeftOvers;
  /** With one node, which puts nothing back, none. */
  readonly #standing: StandingLeases;
  readonly #acquire: QuorumAcquire;

  /** @throws LockConfigurationError when one server is listed twice */
  constructor({
    redis,
    credentials,
    runtime = systemRuntime,
    sourceOf = redisSource,
    ...options
  }: RedisLockStoreOptions) {
    const { nodeTimeoutMs } = options;
    const scheduler = new Scheduler(runtime);
    const nodes: readonly RedisNode[] = redis.map(
      (location) =>
        new RedisNode(sourceOf(location, runtime, credentials), options, {
          scheduler,
          isOnly: redis.length === 1,
          situation: (until) => situationOf(nodes, until),
          onLook: () => {
            this.#members.setTwinsAside();
          },
        }),
    );
    this.#options = options;
    this.#scheduler = scheduler;
    this.#nodes = nodes;
    this.#quorum = quorumOf(nodes.length);
    this.#members = new Members(nodes);
    this.#members.expectDifferentNames();
    this.admin = new RedisAdminStore(nodes, runtime);
    const [only] = nodes as readonly [RedisNode, ...RedisNode[]];
    this.once = onceAt(only);
    this.transfer = (request) => only.ask(transferScript, { ...request, whileDown: 'waits' });
    this.write = (request) => writeAt(only, request);
    this.setLimit = (key, limit) => only.ask(setLimitScript, { key, limit, whileDown: 'waits' });
    this.#subscriber = new QuorumSubscriber(nodes, runtime);
    const leftOvers = new LeftOvers(nodes, scheduler, (key) => {
      this.#subscriber.tell(key);
    });
    const standing = new StandingLeases({ nodes, scheduler, leftOvers, nodeTimeoutMs });
    this.#leftOvers = leftOvers;
    this.#standing = standing;
    this.#acquire = new QuorumAcquire({ nodes, runtime, standing, leftOvers });
  }

  /** @throws LockConfigurationError when one server is listed under two names, or cannot have the restart guard */
  async open(): Promise<void> {
    const { warn, restartGuard } = this.#options;
    const problem = evenNumberProblem(this.#nodes.length);
    if (problem !== undefined) warn(problem);
    const opened = await Promise.allSettled(this.#nodes.map((node) => node.looks.open()));
    for (const node of this.#nodes) node.watch.started();
    try {
      for (const result of opened) if (result.status === 'rejected') throw result.reason;
      // One server can have many names.
      this.#members.expectDifferentServers();
    } catch (error) {
      await this.close();
      throw error;
    }
    if (restartGuard?.bootstrap === true) {
      warn(
        '"restartGuard.bootstrap" is set: a server that has lost all its data passes for a new one. Leave it out after the first deployment.',
      );
    }
  }

  acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    return this.#acquire.acquire(request);
  }

  acquireTogether(leases: SeveralLeases): Promise<AcquireOutcome | undefined> {
    const [node, second] = this.#nodes;
    return node === undefined || second !== undefined
      ? Promise.resolve(undefined)
      : acquireTogetherAt(node, leases);
  }

  async extend(leases: readonly LeaseRenewal[]): Promise<readonly ExtendOutcome[]> {
    const sentAt = this.#now();
    const { outcome: outcomes, complete } = await poll(
      this.#nodes,
      this.#quorum,
      (node) => extendAt(node, leases),
      (answers, awaited) => {
        const decided = leases.map((_, index) =>
          extendOutcome(
            answers.map((votes) => votes?.[index]),
            awaited,
            this.#nodes,
          ),
        );
        return decided.every((outcome) => outcome !== undefined) ? decided : undefined;
      },
    );
    // If a majority of one lost a key, no other node can confirm that the key was not granted since.
    if (this.#nodes.length > 1) {
      void complete.then((votes) => {
        this.#standing.renewed(leases, { outcomes, votes, sentAt });
      });
    }
    return outcomes;
  }

  release(lease: EndingLease, lastToken?: number, keepMs = 0): Promise<ReleaseOutcome> {
    const [node, second] = this.#nodes;
    if (node === undefined || second !== undefined)
      return this.#releaseAtMany(lease, lastToken, keepMs);
    // The answer of the only node decides, and there is nothing to complete.
    const { isPlain } = lease;
    return releaseAt(node, lease, { lastToken, keepMs, isPlain, whileDown: 'waits' });
  }

  async #releaseAtMany(
    lease: EndingLease,
    lastToken: number | undefined,
    keepMs: number,
  ): Promise<ReleaseOutcome> {
    const sentAt = this.#now();
    const standing = this.#standing.end(lease);
    const isPlain = lease.isPlain === true && standing?.isBrought === false;
    const { outcome, complete } = await poll(
      this.#nodes,
      this.#quorum,
      (node) => releaseAt(node, lease, { lastToken, keepMs, isPlain, whileDown: 'waits' }),
      (answers, awaited) => releaseOutcome(answers, awaited, this.#nodes),
    );
    if (outcome.status !== 'unavailable') {
      void complete.then((outcomes) => {
        const leftMs = Math.max(0, keepMs - (this.#now() - sentAt));
        this.#nodes.forEach((node, index) => {
          if (outcomes[index]?.status === 'unavailable')
            this.#leftOvers.remove(node, lease, leftMs);
        });
        // One that does not have it would give the key away with the loss of one node more.
        if (outcome.status !== 'released' || keepMs === 0) return;
        const untilMs = sentAt + keepMs;
        const kept: Standing = {
          ...{ lease, lastToken: lastToken ?? 0, untilMs, state: 'kept', isBrought: false },
        };
        this.#nodes.forEach((node, index) => {
          if (outcomes[index]?.status === 'not-held') this.#standing.bringTo(node, kept);
        });
      });
    }
    return outcome;
  }

  listen(listener: ReleaseListener, onDeaf?: () => void): Promise<'listening' | 'polling'> {
    return this.#subscriber.open(listener, onDeaf);
  }

  async leave(lease: LeaseRequest, line: LinePlace): Promise<void> {
    await poll(
      this.#nodes,
      this.#quorum,
      (node) => this.#leftOvers.leave(node, lease, line),
      (_, awaited) => awaited === 0 || undefined,
    );
  }

  async health(withinMs?: number): Promise<StoreHealth> {
    const byNode = await Promise.all(this.#nodes.map((node) => node.looks.health(withinMs)));
    const well = byNode.filter((masters) =>
      masters.every((node) => node.problem === undefined && node.quarantinedForMs === 0),
    );
    return {
      nodes: byNode.flat(),
      quorum: this.#quorum,
      hasQuorum: well.length >= this.#quorum,
    };
  }

  async close(): Promise<void> {
    this.#standing.close();
    await this.#leftOvers.close();
    this.#subscriber.close();
    for (const node of this.#nodes) node.close();
    this.#scheduler.clear();
  }

  #now(): number {
    return this.#scheduler.runtime.now().monotonicMs;
  }
}
