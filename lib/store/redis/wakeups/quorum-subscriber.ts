import type { LineCall, ReleaseListener } from '../../lock-store.js';
import { poll, quorumOf } from '../quorum/poll.js';
import type { RedisNode } from '../node/redis-node.js';

/** How far apart processes look that hear of one release, in ms at the most: all at once they would split the votes. */
const SPREAD_MS = 5;

/**
 * Hears of releases on all nodes. A majority of them is enough: every lease that refuses somebody is on a node that both can hear.
 */
export class QuorumSubscriber {
  readonly #nodes: readonly RedisNode[];
  readonly #quorum: number;
  readonly #hearing = new Set<RedisNode>();
  /** What was reported by one node and may not have reached the others yet. */
  readonly #spreading = new Map<string, NodeJS.Timeout>();
  #listener: ReleaseListener = () => undefined;
  #onDeaf: () => void = () => undefined;

  constructor(nodes: readonly RedisNode[]) {
    this.#nodes = nodes;
    this.#quorum = quorumOf(nodes.length);
  }

  async open(
    listener: ReleaseListener,
    onDeaf: () => void = () => undefined,
  ): Promise<'listening' | 'polling'> {
    this.#listener = listener;
    this.#onDeaf = onDeaf;
    const { outcome } = await poll(
      this.#nodes,
      this.#quorum,
      (node) => this.#openAt(node),
      (_, awaited) => {
        if (this.#isHearing()) return 'listening';
        return awaited === 0 ? 'polling' : undefined;
      },
    );
    return outcome;
  }

  /** A key was released. */
  tell(key: string, call?: LineCall): void {
    if (this.#nodes.length === 1) {
      this.#listener(key, call);
      return;
    }
    const id = `${call?.to ?? ''} ${key}`;
    if (this.#spreading.has(id)) return;
    const timer = setTimeout(
      () => {
        this.#spreading.delete(id);
        this.#listener(key, call);
      },
      1 + Math.random() * SPREAD_MS,
    );
    this.#spreading.set(id, timer);
  }

  close(): void {
    for (const timer of this.#spreading.values()) clearTimeout(timer);
    this.#spreading.clear();
  }

  #isHearing(): boolean {
    return this.#hearing.size >= this.#quorum;
  }

  async #openAt(node: RedisNode): Promise<void> {
    const open = await node.listen(
      (key, call) => {
        if (key !== undefined) this.tell(key, call);
        else this.#opened(node);
      },
      () => {
        const wasHearing = this.#isHearing();
        this.#hearing.delete(node);
        if (wasHearing && !this.#isHearing()) this.#onDeaf();
      },
    );
    if (open) this.#hearing.add(node);
  }

  /** Again: what was released meanwhile was not heard. */
  #opened(node: RedisNode): void {
    this.#hearing.add(node);
    if (this.#isHearing()) this.#listener();
  }
}
