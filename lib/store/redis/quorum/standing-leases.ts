import { BriefMap } from '../../../collections/brief-map.js';
import type { Scheduler } from '../../../time/scheduler.js';
import {
  leaseName,
  type AcquireRequest,
  type ExtendOutcome,
  type LeaseReference,
  type LeaseRenewal,
  type LeaseRequest,
} from '../../lock-store.js';
import { SweepPace } from '../../sweep-pace.js';
import { extendAt } from '../node/extend.js';
import type { KeyAnswer } from '../scripts/extend.js';
import { releaseAt } from '../node/release.js';
import type { RedisNode } from '../node/redis-node.js';
import type { Vote } from '../scripts/acquire.js';
import type { LeftOvers } from './left-overs.js';

/** A lease that not all nodes have is brought to the others after so long, and again; the last pause repeats for as long as it stands. */
const COMPLETE_AFTER_MS = [50, 500, 2_000] as const;

/** From this number of granted leases on that were not released, those that have ended are removed. */
const FIRST_CROWD = 1_000;

/** A lease that a majority has, and that each node should have. */
export interface Standing {
  /** As it was acquired or renewed last. */
  lease: LeaseRequest;
  /** The last fencing token that was used under it, as far as is known. */
  lastToken: number;
  /** By the monotonic clock: when it ends unless it is renewed. */
  untilMs: number;
  /** `'kept'`: it was released, and its keys stay taken until it ends. */
  state: 'held' | 'kept' | 'over';
  /** A request that puts it back may be on its way to a node: only a release that changes the fence stops that one. */
  isBrought: boolean;
}

interface Dependencies {
  readonly nodes: readonly RedisNode[];
  readonly scheduler: Scheduler;
  readonly leftOvers: LeftOvers;
  readonly nodeTimeoutMs: number;
}

/** Over several nodes: leases that a majority has are brought to the others, too, for as long as they stand. */
export class StandingLeases {
  readonly #deps: Dependencies;
  /** Leases that were granted and not released, by name. */
  readonly #held = new BriefMap<string, Standing>();
  readonly #pace = new SweepPace(FIRST_CROWD);
  /** What is being brought to each node. */
  readonly #bringing: ReadonlyMap<RedisNode, Set<Standing>>;
  #closed = false;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
    this.#bringing = new Map(dependencies.nodes.map((node) => [node, new Set()]));
  }

  close(): void {
    this.#closed = true;
  }

  /** Not all leases are released: during a long outage callers give up. */
  add(standing: Standing): void {
    this.#held.set(leaseName(standing.lease), standing);
    if (!this.#pace.isDue(this.#held.size)) return;
    // A renewal may prolong a lease here for so long after it would have ended: when all nodes have answered.
    const endedBefore = this.#now() - 2 * this.#deps.nodeTimeoutMs;
    for (const { lease, untilMs } of this.#held.values())
      if (untilMs < endedBefore) this.end(lease);
    this.#pace.swept(this.#held.size);
  }

  /** Returns what ends, if that is known. */
  end(lease: LeaseReference): Standing | undefined {
    const name = leaseName(lease);
    const standing = this.#held.get(name);
    if (standing !== undefined) standing.state = 'over';
    this.#held.delete(name);
    return standing;
  }

  /**
   * After a majority has granted a lease, it leaves the lines at the nodes that refused it. It should also not stay on
   * a bare majority: the loss of one more node would end it. These nodes may have refused it for a vote that was
   * returned since, or may have been unreachable for a moment.
   */
  async complete(
    request: AcquireRequest,
    standing: Standing,
    votes: readonly Vote[],
  ): Promise<void> {
    const { nodes } = this.#deps;
    const { line } = request;
    if (line !== undefined) {
      // Only once: a later try could remove what is brought there meanwhile.
      const refused = nodes.filter((_, index) => votes[index]?.status === 'held');
      await Promise.all(refused.map((node) => releaseAt(node, request, { leaves: line })));
    }
    nodes.forEach((node, index) => {
      if (votes[index]?.status !== 'granted') this.bringTo(node, standing);
    });
  }

  /**
   * Brings a lease to a node, again and again, until the node has it or the lease is over. One that is away gets it by a renewal when it
   * is back.
   */
  bringTo(node: RedisNode, standing: Standing): void {
    const { scheduler } = this.#deps;
    const bringing = this.#bringing.get(node);
    if (bringing === undefined || bringing.has(standing)) return;
    bringing.add(standing);
    standing.isBrought = true;
    const again = (tries: number): void => {
      const [, , last] = COMPLETE_AFTER_MS;
      const pauseMs = (COMPLETE_AFTER_MS[tries] ?? last) * (1 + scheduler.runtime.random());
      scheduler.schedule(pauseMs, () => {
        void this.#putOn(node, standing).then((result) => {
          const isAway = result === 'unavailable' && tries >= COMPLETE_AFTER_MS.length - 1;
          if (result === 'settled' || isAway || this.#closed) bringing.delete(standing);
          else again(tries + 1);
        });
      });
    };
    if (!this.#closed) again(0);
  }

  /**
   * Removes lost leases from the nodes that may still have them. Brings leases that a majority has just confirmed to the
   * nodes that have lost them. Otherwise each restart of a node would take a vote away from a lease that is held for
   * long.
   */
  renewed(leases: readonly LeaseRenewal[], { outcomes, votes, sentAt }: Renewal): void {
    const { nodes, leftOvers } = this.#deps;
    for (const [index, lease] of leases.entries()) {
      const { status } = outcomes[index] ?? {};
      if (status === 'lost') this.end(lease);
      // Released meanwhile: nothing may come after that.
      const standing = this.#held.get(leaseName(lease));
      if (status === 'extended' && standing !== undefined) {
        standing.lease = lease;
        standing.untilMs = sentAt + lease.ttlMs;
        standing.lastToken = lease.fencingToken;
      }
      for (const [number, node] of nodes.entries()) {
        const vote = votes[number]?.[index]?.status;
        const mayHaveIt = vote === 'extended' || vote === 'unavailable';
        if (status === 'lost' && mayHaveIt) leftOvers.remove(node, lease);
        // A stolen one is mostly a vote of a caller that died while asking, or returns it.
        const isMissing = vote === 'stolen' || (vote === 'gone' && status === 'extended');
        if (isMissing && standing !== undefined) this.bringTo(node, standing);
      }
    }
  }

  /**
   * Whether nothing is left to do at this node for a lease that a majority has. Others are not asked, for their TTL may
   * be longer by now.
   */
  async #putOn(node: RedisNode, standing: Standing): Promise<'settled' | 'taken' | 'unavailable'> {
    const lease = this.#renewalOf(standing);
    if (lease === undefined) return 'settled';
    const [vote] = await extendAt(node, [lease]);
    if (vote?.status === 'stolen') return 'taken';
    if (vote?.status !== 'gone') return vote?.status === 'extended' ? 'settled' : 'unavailable';
    const still = this.#renewalOf(standing);
    if (still === undefined) return 'settled';
    const [restored] = await extendAt(node, [{ ...still, expectedFence: vote.fence }]);
    return restored?.status === 'extended' ? 'settled' : 'taken';
  }

  /** What brings a lease to a node; `undefined` when it is over. */
  #renewalOf({ lease, lastToken, untilMs, state }: Standing): LeaseRenewal | undefined {
    const leftMs = Math.floor(untilMs - this.#now());
    if (state === 'over' || leftMs <= 0 || this.#closed) return undefined;
    const { key, token } = lease;
    const ttlMs = state === 'kept' ? leftMs : lease.ttlMs;
    return { key, token, ttlMs, fencingToken: lastToken, validForMs: leftMs };
  }

  #now(): number {
    return this.#deps.scheduler.runtime.now().monotonicMs;
  }
}

/** What has become of a renewal, in the order of the leases, and of each node. */
interface Renewal {
  readonly outcomes: readonly ExtendOutcome[];
  readonly votes: readonly (readonly KeyAnswer[])[];
  /** By the monotonic clock. */
  readonly sentAt: number;
}
