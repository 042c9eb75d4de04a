import { LockConfigurationError } from '../../../errors.js';
import { Scheduler } from '../../../time/scheduler.js';
import { systemRuntime, type Runtime } from '../../../time/runtime.js';
import { CleanUp } from '../../clean-up.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  ExtendOutcome,
  Granted,
  InspectOutcome,
  LeaseRenewal,
  LeaseRequest,
  LinePlace,
  LockStore,
  ReleaseListener,
  ReleaseOutcome,
  StoreHealth,
  Unavailable,
} from '../../lock-store.js';
import { holdModeOf, turnsOf } from '../../owner-token.js';
import { QuorumSubscriber } from '../wakeups/quorum-subscriber.js';
import type { RenewalVote, Vote } from '../node/node-answers.js';
import type { Until } from '../node/node-watch.js';
import { RedisOnceStore } from './redis-once-store.js';
import { poll, quorumOf } from './poll.js';
import type { RestartGuard } from '../node/probe.js';
import type { RedisNodeOptions, ReleaseManner } from '../node/node-options.js';
import { RedisNode } from '../node/redis-node.js';
import { redisSource, type RedisLocation } from '../client/redis-source.js';
import type { RedisSource } from '../client/redis-client.js';
import {
  acquireOutcome,
  extendOutcome,
  forcedOutcome,
  heldAtFirst,
  releaseOutcome,
  sightOf,
  unavailable,
} from './votes.js';

export interface RedisLockStoreOptions extends RedisNodeOptions {
  /** One for each node that votes. */
  readonly redis: readonly RedisLocation[];
  readonly runtime?: Runtime;
  /** How a location becomes a client. Default: with ioredis. */
  readonly sourceOf?: (location: RedisLocation, runtime: Runtime) => RedisSource;
}

/** A lease that not all nodes have is brought to the others after so long, and again; the last pause repeats for as long as it stands. */
const COMPLETE_AFTER_MS = [50, 500, 2_000] as const;

/** A lease that a majority has, and that each node should have. */
interface Standing {
  readonly lease: LeaseRequest;
  /** The last fencing token that is reserved with it, or was used under it. */
  readonly lastToken: number;
  /** By the monotonic clock: when it ends unless it is renewed. */
  untilMs: number;
  /** `'kept'`: it was released, and its keys stay taken until it ends. */
  state: 'held' | 'kept' | 'over';
}

/** With so many leases granted and not given back, those that have ended are forgotten; next time with twice as many as are left then. */
const FIRST_CROWD = 1_000;

/** How long closing waits for a node that does not answer. */
const GIVE_BACK_MS = 1_000;

/**
 * By how much a proposed fencing token is ahead of the clocks of all nodes, so that each of them takes it, although the way there took
 * longer than it did before. For so long, and the way, the clocks do not hold a token up: if every fence is lost meanwhile, a smaller one
 * may follow.
 */
const PROPOSAL_SLACK_US = 5_000;

/**
 * Locks on a majority of independent Redis masters: Redlock (redis.io, "Distributed locks with Redis"), with fencing tokens that hold
 * across the majority. With one node, standalone, behind Sentinel or a Cluster, it is the same with a majority of one.
 */
export class RedisLockStore implements LockStore {
  readonly once: RedisOnceStore;
  readonly #nodes: readonly RedisNode[];
  readonly #quorum: number;
  readonly #turns: number;
  readonly #warn: (message: string) => void;
  readonly #restartGuard: RestartGuard | undefined;
  readonly #scheduler: Scheduler;
  readonly #subscriber: QuorumSubscriber;
  /** Which node votes for a server, by the run of the server. */
  readonly #voters = new Map<string, RedisNode>();
  /** Of each node: what requests that were decided without its answer may have left there. */
  readonly #cleanUps: ReadonlyMap<RedisNode, CleanUp>;
  /** Leases that were granted and not given back, by token; with one node, which puts nothing back, none. */
  readonly #held = new Map<string, Standing>();
  #crowd = FIRST_CROWD;
  /** A renewal may prolong a lease here for so long after it would have ended: when all nodes have answered. */
  readonly #answersWithinMs: number;
  /** Of each node: what is being brought to it. */
  readonly #bringing: ReadonlyMap<RedisNode, Set<Standing>>;
  #closed = false;

  /** @throws LockConfigurationError when one server is listed twice */
  constructor({
    redis,
    runtime = systemRuntime,
    sourceOf = redisSource,
    ...options
  }: RedisLockStoreOptions) {
    const scheduler = new Scheduler(runtime);
    this.#scheduler = scheduler;
    this.#quorum = quorumOf(redis.length);
    this.#nodes = redis.map(
      (location) =>
        new RedisNode(sourceOf(location, runtime), options, {
          scheduler,
          isOnly: redis.length === 1,
          situation: (until) => this.#situation(until),
          onLook: () => {
            this.#setTwinsAside();
          },
        }),
    );
    const [twins] = twinsOf(this.#nodes, ({ name }) => name);
    if (twins !== undefined) throw listedTwice(twins);
    this.once = new RedisOnceStore(this.#nodes);
    this.#bringing = new Map(this.#nodes.map((node) => [node, new Set()]));
    this.#warn = options.warn;
    this.#restartGuard = options.restartGuard;
    this.#turns = options.turns;
    this.#answersWithinMs = 2 * options.nodeTimeoutMs;
    this.#subscriber = new QuorumSubscriber(this.#nodes, runtime);
    const onRemoved = (keys: readonly string[]): void => {
      for (const key of keys) this.#subscriber.tell(key);
    };
    this.#cleanUps = new Map(
      this.#nodes.map((node) => {
        const store = {
          release: (lease: LeaseRequest, lastToken?: number, keepMs?: number) =>
            node.release(lease, { lastToken, keepMs }),
        };
        return [node, new CleanUp({ store, scheduler, onRemoved })];
      }),
    );
  }

  /** @throws LockConfigurationError when one server is listed under two names, or cannot have the restart guard */
  async open(): Promise<void> {
    const count = this.#nodes.length;
    if (count > 1 && count % 2 === 0) {
      this.#warn(
        count === 2
          ? 'Option "redis" lists 2 nodes. Both have to agree, so the loss of either ends all locks: take one, or three.'
          : `Option "redis" lists ${String(count)} nodes: they survive the loss of ${String(count - this.#quorum)}, as ${String(count - 1)} would. Take an odd number.`,
      );
    }
    const opened = await Promise.allSettled(this.#nodes.map((node) => node.open()));
    for (const node of this.#nodes) node.opened();
    try {
      for (const result of opened) if (result.status === 'rejected') throw result.reason;
      // One server can have many names.
      const [twins] = twinsOf(this.#nodes, ({ run }) => run);
      if (twins !== undefined) throw listedTwice(twins);
    } catch (error) {
      await this.close();
      throw error;
    }
    if (this.#restartGuard?.bootstrap === true) {
      this.#warn(
        '"restartGuard.bootstrap" is set: a server that has lost all its data passes for a new one. Leave it out after the first deployment.',
      );
    }
  }

  async acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    const proposal = this.#proposal();
    const sentAt = this.#now();
    const first = await this.#askFirst(request, proposal);
    if (first?.vote.status === 'refused') return heldAtFirst(first.vote);
    const { outcome, answers, complete } = await poll(
      this.#nodes,
      this.#quorum,
      (node) =>
        node === first?.node ? Promise.resolve(first.vote) : node.acquire(request, proposal),
      (votes, awaited) => acquireOutcome(votes, awaited, this.#nodes, request.keys[0]),
    );
    if (outcome.status === 'granted') {
      const granted = { ...outcome, turns: turnsOf(request.token, this.#turns) };
      if (this.#nodes.length === 1) return granted;
      const standing: Standing = {
        lease: request,
        lastToken: granted.fencingToken + granted.turns - 1,
        untilMs: sentAt + request.ttlMs,
        state: 'held',
      };
      this.#remember(standing);
      void complete.then((votes) => this.#complete(request, standing, votes));
      const agreed = await this.#agree(request, granted, answers);
      if (agreed.status !== 'granted') this.#isOver(request.token);
      return agreed;
    }
    // After an outage the caller removes what may be left on any of the nodes.
    if (outcome.status === 'held') await this.#withdraw(request, answers);
    return outcome;
  }

  async extend(leases: readonly LeaseRenewal[]): Promise<readonly ExtendOutcome[]> {
    const sentAt = this.#now();
    const { outcome, complete } = await poll(
      this.#nodes,
      this.#quorum,
      (node) => node.extend(leases),
      (answers, awaited) => {
        const outcomes = leases.map((_, index) =>
          extendOutcome(
            answers.map((votes) => votes?.[index]),
            awaited,
            this.#nodes,
          ),
        );
        return outcomes.every(isDecided) ? outcomes : undefined;
      },
    );
    // A majority of one that lost a key has nobody to confirm that nobody else was granted it since.
    if (this.#nodes.length > 1) {
      void complete.then((votes) => this.#tidy(leases, outcome, votes, sentAt));
    }
    return outcome;
  }

  async release(lease: LeaseRequest, lastToken?: number, keepMs = 0): Promise<ReleaseOutcome> {
    const sentAt = this.#now();
    this.#isOver(lease.token);
    const { outcome, complete } = await poll(
      this.#nodes,
      this.#quorum,
      (node) => node.release(lease, { lastToken, keepMs, whileDown: 'waits' }),
      (answers, awaited) => releaseOutcome(answers, awaited, this.#nodes),
    );
    if (outcome.status !== 'unavailable' && this.#nodes.length > 1) {
      void complete.then((outcomes) => {
        const leftMs = Math.max(0, keepMs - (this.#now() - sentAt));
        outcomes.forEach(({ status }, index) => {
          if (status === 'unavailable') this.#cleanUp(index, lease, leftMs);
        });
        // One that does not have it would give the key away with the loss of one node more.
        if (outcome.status !== 'released' || keepMs === 0) return;
        const untilMs = sentAt + keepMs;
        const kept: Standing = { lease, lastToken: lastToken ?? 0, untilMs, state: 'kept' };
        outcomes.forEach(({ status }, index) => {
          if (status === 'not-held') this.#bringTo(index, kept);
        });
      });
    }
    return outcome;
  }

  async inspect(key: string): Promise<InspectOutcome> {
    const { outcome } = await poll(
      this.#nodes,
      this.#quorum,
      (node) => node.inspect(key),
      (sights, awaited) => sightOf(sights, awaited, this.#nodes),
    );
    return outcome;
  }

  async forceRelease(key: string): Promise<ReleaseOutcome> {
    const { outcome } = await poll(
      this.#nodes,
      this.#quorum,
      (node) => node.forceRelease(key),
      (answers, awaited) => forcedOutcome(answers, awaited, this.#nodes),
    );
    return outcome;
  }

  listen(listener: ReleaseListener, onDeaf?: () => void): Promise<'listening' | 'polling'> {
    return this.#subscriber.open(listener, onDeaf);
  }

  async leave(lease: LeaseRequest, line: LinePlace): Promise<void> {
    await poll(
      this.#nodes,
      this.#quorum,
      (node) => node.leave(lease, line),
      (_, awaited) => awaited === 0 || undefined,
    );
  }

  async health(): Promise<StoreHealth> {
    const byNode = await Promise.all(this.#nodes.map((node) => node.health()));
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
    this.#closed = true;
    await Promise.all(
      this.#nodes.map(async (node) => {
        const cleanUp = this.#cleanUps.get(node);
        // Of a node that does not answer, what is left there expires.
        const isTried = cleanUp !== undefined && cleanUp.size > 0 && !node.isSilent;
        if (isTried) await this.#within(GIVE_BACK_MS, cleanUp.finish());
        cleanUp?.close();
      }),
    );
    this.#subscriber.close();
    for (const node of this.#nodes) node.close();
    this.#scheduler.clear();
  }

  #now(): number {
    return this.#scheduler.runtime.now().monotonicMs;
  }

  /** Waits for it no longer than so many ms. */
  async #within(limitMs: number, task: Promise<unknown>): Promise<void> {
    await new Promise<void>((resolve) => {
      const limit = this.#scheduler.schedule(limitMs, resolve);
      const done = (): void => {
        limit.cancel();
        resolve();
      };
      task.then(done, done);
    });
  }

  /** What the nodes that are there mean for locks. */
  #situation(until: Until): string {
    const count = this.#nodes.length;
    if (count === 1)
      return this.#nodes[0]?.isWell === true
        ? 'Locks are granted again.'
        : `Locks are refused (503) until ${until}.`;
    const there = this.#nodes.filter(({ isWell }) => isWell).length;
    const quarantined = this.#nodes.filter((node) => node.isQuarantined).length;
    const more = quarantined === 0 ? '' : ` (${String(quarantined)} in quarantine)`;
    const left = `${String(there)} of ${String(count)} nodes are there${more}`;
    return there >= this.#quorum
      ? `${left}: locks go on.`
      : `${left}: locks are refused (503) until there are ${String(this.#quorum)}.`;
  }

  /**
   * A server that was not there at the start, or is at another address by now, may be one that is listed already. It has one vote: that of
   * the node that reached it first, for requests of that one may have been answered.
   */
  #setTwinsAside(): void {
    for (const [run, node] of this.#voters) if (node.run !== run) this.#voters.delete(run);
    for (const node of this.#nodes) {
      const voter = (node.run === undefined ? undefined : this.#voters.get(node.run)) ?? node;
      if (node.run !== undefined) this.#voters.set(node.run, voter);
      node.setAside(voter === node ? undefined : voter.name);
    }
  }

  /**
   * After a split vote one node is asked before the others: everybody who tries again asks the same one, and only whoever has its vote
   * asks for more.
   */
  async #askFirst(
    request: AcquireRequest,
    proposal: number,
  ): Promise<{ readonly node: RedisNode; readonly vote: Vote } | undefined> {
    if (request.isSplit !== true || this.#nodes.length === 1) return undefined;
    const node = this.#nodes.find(({ isThere, isSilent }) => isThere && !isSilent);
    return node && { node, vote: await node.acquire(request, proposal) };
  }

  /** A fencing token that all nodes can take: ahead of every clock, so that none of them has to go beyond it. */
  #proposal(): number {
    if (this.#nodes.length === 1) return 0;
    const clocks = this.#nodes.map((node) => node.clockOnArrivalUs() ?? 0);
    const highest = Math.max(...clocks);
    return highest > 0 ? Math.ceil(highest + PROPOSAL_SLACK_US) : 0;
  }

  /**
   * Every majority has a node in common with this one: the largest token counts once a majority has it, because none of those nodes
   * will ever give a smaller one.
   */
  async #agree(
    request: AcquireRequest,
    granted: Granted,
    votes: readonly (Vote | undefined)[],
  ): Promise<AcquireOutcome> {
    const { fencingToken } = granted;
    const tokens = votes.map((vote) =>
      vote?.status === 'granted' ? vote.fencingToken : undefined,
    );
    const missing = this.#quorum - tokens.filter((token) => token === fencingToken).length;
    if (missing <= 0) return granted;
    const lower = this.#nodes.filter((_, index) => (tokens[index] ?? Infinity) < fencingToken);
    const { outcome } = await poll<RedisNode, Unavailable | 'raised', AcquireOutcome>(
      lower,
      missing,
      async (node) => (await node.raiseFence(request, fencingToken)) ?? 'raised',
      (answers, awaited) => {
        const raised = answers.filter((answer) => answer === 'raised').length;
        if (raised >= missing) return granted;
        if (raised + awaited >= missing) return undefined;
        const failures = this.#nodes.map((node) => {
          const answer = answers[lower.indexOf(node)];
          return answer === 'raised' ? undefined : answer;
        });
        // It was granted before: there is something to remove.
        const { sent: _, ...outage } = unavailable(failures, this.#nodes);
        return outage;
      },
    );
    return outcome;
  }

  /**
   * Granted by a majority, it waits no longer at the nodes that refused it, nor should it stay on a bare majority: with the loss of one
   * node more it would be gone. They may have refused it for a vote that was taken back since, or not have been there for a moment.
   */
  async #complete(
    request: AcquireRequest,
    standing: Standing,
    votes: readonly Vote[],
  ): Promise<void> {
    const { line } = request;
    if (line !== undefined) {
      const refused = this.#nodes.filter((_, index) => votes[index]?.status === 'refused');
      await Promise.all(refused.map((node) => node.leave(request, line)));
    }
    const isShared = holdModeOf(request.token) !== 'exclusive';
    votes.forEach((vote, index) => {
      if (vote.status !== 'granted') this.#bringTo(index, standing);
      // Who joins has to find one fencing token on all of them.
      else if (!isShared || standing.state === 'over') return;
      else if (vote.fencingToken > standing.lastToken) this.#bringTo(index, standing);
      else if (vote.fencingToken < standing.lastToken)
        void this.#nodes[index]?.raiseFence(request, standing.lastToken);
    });
  }

  /**
   * Brings a lease to a node, again and again, until the node has it or the lease is over. One that is away gets it by a renewal when it
   * is back.
   */
  #bringTo(index: number, standing: Standing): void {
    const node = this.#nodes[index];
    const bringing = node && this.#bringing.get(node);
    if (node === undefined || bringing === undefined || bringing.has(standing)) return;
    bringing.add(standing);
    const again = (tries: number): void => {
      const [, , last] = COMPLETE_AFTER_MS;
      this.#scheduler.schedule(
        (COMPLETE_AFTER_MS[tries] ?? last) * (1 + this.#scheduler.runtime.random()),
        () => {
          void this.#putOn(node, standing).then((result) => {
            const isAway = result === 'unavailable' && tries >= COMPLETE_AFTER_MS.length - 1;
            if (result === 'settled' || isAway || this.#closed) bringing.delete(standing);
            else again(tries + 1);
          });
        },
      );
    };
    if (!this.#closed) again(0);
  }

  /** Of a lease that a majority has: whether nothing is left to do at this node. Others are not asked, for their TTL may be longer by now. */
  async #putOn(node: RedisNode, standing: Standing): Promise<'settled' | 'taken' | 'unavailable'> {
    const lease = this.#renewalOf(standing);
    if (lease === undefined) return 'settled';
    const [vote] = await node.extend([lease]);
    if (vote?.status === 'stolen') return 'taken';
    if (vote?.status !== 'gone') return vote?.status === 'extended' ? 'settled' : 'unavailable';
    const still = this.#renewalOf(standing);
    if (still === undefined) return 'settled';
    const [restored] = await node.extend([{ ...still, expectedFences: vote.fences }]);
    return restored?.status === 'extended' ? 'settled' : 'taken';
  }

  /** What brings a lease to a node; `undefined` when it is over. */
  #renewalOf({ lease, lastToken, untilMs, state }: Standing): LeaseRenewal | undefined {
    const leftMs = Math.floor(untilMs - this.#now());
    if (state === 'over' || leftMs <= 0 || this.#closed) return undefined;
    const { keys, token } = lease;
    const ttlMs = state === 'kept' ? leftMs : lease.ttlMs;
    return { keys, token, ttlMs, fencingToken: lastToken, validForMs: leftMs };
  }

  /** Not all leases are given back: during a long outage callers give up. */
  #remember(standing: Standing): void {
    this.#held.set(standing.lease.token, standing);
    if (this.#held.size < this.#crowd) return;
    const endedBefore = this.#now() - this.#answersWithinMs;
    for (const [token, { untilMs }] of this.#held) if (untilMs < endedBefore) this.#isOver(token);
    this.#crowd = Math.max(FIRST_CROWD, 2 * this.#held.size);
  }

  #isOver(token: string): void {
    const standing = this.#held.get(token);
    if (standing !== undefined) standing.state = 'over';
    this.#held.delete(token);
  }

  /** Takes votes back that were not enough. What did not answer may have voted, or may yet. */
  async #withdraw(request: AcquireRequest, votes: readonly (Vote | undefined)[]): Promise<void> {
    const isAlone = holdModeOf(request.token) === 'exclusive';
    const manner: ReleaseManner = isAlone ? { wakes: 'nobody' } : {};
    await Promise.all(
      this.#nodes.map(async (node, index) => {
        const vote = votes[index];
        if (vote?.status === 'refused') return;
        // Nobody has to be told: whom this vote refused knows that it was no majority, and asks again. Unless it was one of several who
        // would hold the key together, who look alike to the one refused.
        const isGone =
          vote?.status === 'granted' &&
          (await node.release(request, { ...manner, lastToken: vote.fencingToken })).status !==
            'unavailable';
        const wasNeverSent = vote?.status === 'unavailable' && vote.sent === false;
        if (!isGone && !wasNeverSent) this.#cleanUp(index, request);
      }),
    );
  }

  /**
   * Takes leases that are lost off the nodes that may still have them. Puts keys back on nodes that have lost them, of leases that a
   * majority has just confirmed: else each restart of a node would take a vote away from a lease that is held for long. Refused there
   * when anybody was granted the key since, or it was released.
   */
  async #tidy(
    leases: readonly LeaseRenewal[],
    outcomes: readonly ExtendOutcome[],
    votes: readonly (readonly RenewalVote[])[],
    sentAt: number,
  ): Promise<void> {
    const elapsedMs = this.#now() - sentAt;
    leases.forEach(({ token, ttlMs }, index) => {
      const standing = this.#held.get(token);
      if (outcomes[index]?.status === 'lost') this.#isOver(token);
      else if (outcomes[index]?.status === 'extended' && standing !== undefined)
        standing.untilMs = sentAt + ttlMs;
    });
    await Promise.all(
      this.#nodes.map(async (node, number) => {
        const lost = leases.flatMap((lease, index) => {
          const vote = votes[number]?.[index];
          const mayHaveIt = vote?.status === 'extended' || vote?.status === 'unavailable';
          if (outcomes[index]?.status === 'lost' && mayHaveIt) this.#cleanUp(number, lease);
          // Given back meanwhile: nothing may come after that.
          const standing = this.#held.get(lease.token);
          if (standing === undefined) return [];
          // Mostly a vote of somebody who died while asking, or takes it back.
          if (vote?.status === 'stolen') this.#bringTo(number, standing);
          if (vote?.status !== 'gone' || outcomes[index]?.status !== 'extended') return [];
          const validForMs = lease.validForMs - elapsedMs;
          return validForMs > 0 ? [{ ...lease, validForMs, expectedFences: vote.fences }] : [];
        });
        return lost.length === 0 || this.#closed ? [] : node.extend(lost);
      }),
    );
  }

  #cleanUp(index: number, { keys, token, ttlMs }: LeaseRequest, keepMs = 0): void {
    const node = this.#nodes[index];
    if (node !== undefined) this.#cleanUps.get(node)?.add({ keys, token, ttlMs }, keepMs);
  }
}

const isDecided = (outcome: ExtendOutcome | undefined): outcome is ExtendOutcome =>
  outcome !== undefined;

/** Pairs of nodes of which this says the same, unless it says nothing. */
const twinsOf = (
  nodes: readonly RedisNode[],
  markOf: (node: RedisNode) => string | undefined,
): (readonly [RedisNode, RedisNode])[] =>
  nodes.flatMap((node) => {
    const mark = markOf(node);
    const first = nodes.find((other) => markOf(other) === mark);
    return mark === undefined || first === undefined || first === node ? [] : [[first, node]];
  });

const listedTwice = ([first, second]: readonly [RedisNode, RedisNode]): LockConfigurationError =>
  new LockConfigurationError(
    `Option "redis" lists one server twice: ${first.name} and ${second.name}. ` +
      'The nodes of a quorum have to fail independently of each other.',
  );
