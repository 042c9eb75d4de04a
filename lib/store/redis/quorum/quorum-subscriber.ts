import type { CancelTimer } from '../../../time/clock.js';
import type { Runtime } from '../../../time/runtime.js';
import type { LineCall, ReleaseListener } from '../../lock-store.js';
import { poll, quorumOf } from './poll.js';
import type { Voter } from './voter.js';

/**
 * At most how far apart processes ask that are notified of one release, in ms: all at once they would split the votes.
 */
const SPREAD_MS = 5;

/**
 * Receives releases from all nodes. A majority of them is enough: every lease that refuses a caller is on a node that
 * both can hear.
 */
export class QuorumSubscriber {
  readonly #nodes: readonly Voter[];
  readonly #quorum: number;
  readonly #runtime: Runtime;
  readonly #hearing = new Set<Voter>();
  /** What was reported by one node and may not have reached the others yet. */
  readonly #spreading = new Map<string, CancelTimer>();
  #listener: ReleaseListener = () => undefined;
  #onDeaf: () => void = () => undefined;

  constructor(nodes: readonly Voter[], runtime: Runtime) {
    this.#runtime = runtime;
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
    const id = `${call?.to ?? ''} ${key}`;
    if (this.#spreading.has(id)) return;
    // Not by the scheduler: its slots would bring those together again whom this spreads.
    const cancel = this.#runtime.setTimer(
      () => {
        this.#spreading.delete(id);
        this.#listener(key, call);
      },
      1 + this.#runtime.random() * SPREAD_MS,
    );
    this.#spreading.set(id, cancel);
  }

  close(): void {
    for (const cancel of this.#spreading.values()) cancel();
    this.#spreading.clear();
  }

  #isHearing(): boolean {
    return this.#hearing.size >= this.#quorum;
  }

  async #openAt(node: Voter): Promise<void> {
    const result = await node.listen(
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
    if (result === 'listening') this.#hearing.add(node);
  }

  /** Again: what was released meanwhile was not heard. */
  #opened(node: Voter): void {
    this.#hearing.add(node);
    if (this.#isHearing()) this.#listener();
  }
}
