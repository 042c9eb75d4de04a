import type { Scheduler } from '../../../time/scheduler.js';
import { CleanUp, type LeftOver } from '../../clean-up.js';
import type { LeaseRequest, LinePlace } from '../../lock-store.js';
import { releaseAt } from '../node/release.js';
import type { RedisNode } from '../node/redis-node.js';

/** How long closing waits for a node that does not answer. */
const GIVE_BACK_MS = 1_000;

/** A place in line outlives the lease that is waited for: it stands as long as its process listens. */
const LEAVES_FOR_MS = 60_000;

/** What requests that were decided without the answer of a node may have left there. */
export class LeftOvers {
  readonly #scheduler: Scheduler;
  readonly #cleanUps: ReadonlyMap<RedisNode, CleanUp>;

  /** @param onRemoved told the key of what was removed */
  constructor(nodes: readonly RedisNode[], scheduler: Scheduler, onRemoved: (key: string) => void) {
    this.#scheduler = scheduler;
    this.#cleanUps = new Map(
      nodes.map((node) => {
        const store = {
          release: ({ leaves, ...lease }: LeftOver, lastToken?: number, keepMs?: number) =>
            releaseAt(node, lease, { lastToken, keepMs, leaves }),
        };
        return [node, new CleanUp({ store, scheduler, onRemoved })];
      }),
    );
  }

  /** @param keepMs for so long from now the key is not removed, but stays taken */
  remove(node: RedisNode, { key, token, ttlMs }: LeaseRequest, keepMs = 0): void {
    this.#cleanUps.get(node)?.add({ key, token, ttlMs }, keepMs);
  }

  /**
   * Leaves a line at a node, and tries until that replies: a place that stays behind is given a key that no caller
   * takes.
   */
  async leave(
    node: RedisNode,
    { key, token, ttlMs }: LeaseRequest,
    line: LinePlace,
  ): Promise<void> {
    const { status } = await releaseAt(node, { key, token }, { leaves: line });
    if (status !== 'unavailable') return;
    const left = { key, token, ttlMs: Math.max(ttlMs, LEAVES_FOR_MS), leaves: line };
    this.#cleanUps.get(node)?.add(left);
  }

  /** One last try at each node. What is left at a node that does not answer expires. */
  async close(): Promise<void> {
    const timeIsUp = new Promise<void>((resolve) => {
      this.#scheduler.schedule(GIVE_BACK_MS, resolve);
    });
    await Promise.all(
      [...this.#cleanUps].map(async ([node, cleanUp]) => {
        if (cleanUp.size > 0 && !node.isSilent) await Promise.race([cleanUp.finish(), timeIsUp]);
        cleanUp.close();
      }),
    );
  }
}
