import type { Runtime } from '../../../time/runtime.js';
import type { Scheduler } from '../../../time/scheduler.js';
import type { LeaseReference, LinePlace, Unavailable } from '../../lock-store.js';
import { LONGEST_CLAIM_MS } from '../../claim.js';
import type { RedisConnection } from '../client/redis-connection.js';
import type { LineMode } from '../scripts/line.js';
import type { RedisInbox } from '../wakeups/redis-inbox.js';
import {
  AcknowledgedWrites,
  type AcknowledgedReply,
  type WriteRequest,
} from './acknowledged-writes.js';
import { BatchedRuns } from './batched-runs.js';
import type { Group, KeySlots } from './key-groups.js';
import { epochName, isOneSlot } from '../scripts/key-names.js';
import type { NodeClock } from './node-clock.js';
import type { RedisNodeOptions } from './node-options.js';
import type { NodeWatch } from './node-watch.js';

interface NodeComponents {
  readonly options: RedisNodeOptions;
  /** The application's and ours together. */
  readonly prefix: string;
  readonly lineMode: LineMode;
  readonly connection: RedisConnection;
  readonly slots: KeySlots;
  readonly inbox: RedisInbox;
  readonly watch: NodeWatch;
  readonly clock: NodeClock;
  readonly scheduler: Scheduler;
  readonly runtime: Runtime;
  /** Told what was answered with an error, too late, or could not be done in full. */
  readonly onFailure: (failed: Unavailable) => void;
}

/**
 * What the scripts of one node have in common: how they are sent, what they are given of the node, and what is read
 * from the replies.
 */
export class NodeScripts {
  readonly parts: NodeComponents;
  /** Where the restart guard keeps its account. */
  readonly epoch: string;
  /** Whether keys that the node has lost may be put back by renewals. */
  readonly putsBack: boolean;
  readonly #acknowledged: AcknowledgedWrites | undefined;
  /**
   * None on a Cluster, unless the prefix puts all keys into one slot: keys of several slots cannot be given to one call. None with
   * `replicas`: those acquires have a way of their own.
   */
  readonly #batched: BatchedRuns | undefined;

  constructor(parts: NodeComponents) {
    const { options, connection, prefix, lineMode, runtime } = parts;
    const { replicas, restartGuard } = options;
    this.parts = parts;
    this.epoch = epochName(prefix);
    this.putsBack = lineMode === 'quorum' || restartGuard !== undefined;
    this.#batched =
      (connection.client.kind === 'cluster' && !isOneSlot(prefix)) || replicas !== undefined
        ? undefined
        : new BatchedRuns(connection, runtime, options.nodeTimeoutMs);
    this.#acknowledged = replicas && new AcknowledgedWrites(connection, replicas);
  }

  /** The key of the restart guard, if there is one. */
  get guardedBy(): string | undefined {
    return this.parts.options.restartGuard === undefined ? undefined : this.epoch;
  }

  /** Sends what waits for the end of this turn of the event loop: afterwards the connection may be closed. */
  flush(): void {
    this.#batched?.flush();
  }

  /** Runs a script that need not stay: at once, ahead of whatever is asked for later. */
  run(request: WriteRequest): Promise<AcknowledgedReply> {
    if (this.#batched !== undefined) return this.#batched.run(request);
    const { script, call, timeLimitMs, whileDown } = request;
    return this.parts.connection.run(script, call, timeLimitMs, whileDown);
  }

  /** Runs a script that grants or renews: only what enough replicas have counts, where that is asked for. */
  write(slot: number, request: WriteRequest): Promise<AcknowledgedReply> {
    return this.#acknowledged === undefined
      ? this.run(request)
      : this.#acknowledged.run(slot, request);
  }

  /** Callers get 503 for an error reply, and mostly none of them logs it. Finds out whether all requests fail. */
  doubtAfter(reply: AcknowledgedReply): void {
    const failed = reply.status === 'unavailable' ? reply : reply.shortfall;
    if (failed !== undefined) this.parts.onFailure(failed);
  }

  /** How long to wait for a request about a lease of this many ms: never longer than the lease lasts. */
  timeLimitMs(ttlMs: number): number {
    return Math.min(this.parts.options.nodeTimeoutMs, ttlMs);
  }

  /** Now, where the server's clock counts for anything: for proposals to several nodes, and where keys may be put back. */
  sentAt(): number | undefined {
    return this.putsBack ? this.parts.runtime.now().monotonicMs : undefined;
  }

  learn(clockUs: number, sentAt: number | undefined): void {
    if (sentAt === undefined) return;
    this.parts.clock.learn(clockUs, sentAt, this.parts.runtime.now().monotonicMs);
  }

  /** A place in line, as scripts know it: the same for every request of one token, or over several nodes of one line. */
  member({ token }: LeaseReference, line: LinePlace | undefined, group: Group): string {
    if (line === undefined) return '';
    const channel = this.parts.inbox.channelAt(group.slot);
    if (channel === undefined) return '';
    if (this.parts.lineMode === 'quorum') return `${line.id} 0 ${channel}`;
    return `${token} ${String(Math.min(line.ttlMs, LONGEST_CLAIM_MS))} ${channel}`;
  }
}
