import { subscribe, unsubscribe, type TracingChannelSubscribers } from 'node:diagnostics_channel';
import { BriefMap } from '../collections/brief-map.js';
import { ACQUIRE, EVENTS, HOLD, RENEW, REQUEST, type Tracing } from './channels.js';
import { systemRuntime } from '../time/runtime.js';
import type { AcquireContext, HoldContext, LockSubject } from './contexts.js';
import type { LockEvents } from './lock-events.js';
import {
  addressIn,
  isOfNodes,
  METRICS,
  SubjectLabels,
  type AddedMetric,
  type Labels,
  type LockMetric,
  type ReadMetric,
  type Value,
} from './metrics.js';
import { readNodes } from './nodes.js';

/** Records a value of a metric. Durations are in seconds. */
export type AddValue = (value: number, labels: Labels) => void;

/** When each trace began, in ms. */
type Begun<Context> = BriefMap<Context, number>;

/** Feeds metrics from the channels of this process until it is stopped. */
export class MetricsFeed {
  readonly #labels = new SubjectLabels();
  readonly #asking: Begun<AcquireContext> = new BriefMap();
  readonly #holds: Begun<HoldContext> = new BriefMap();
  /** What was read before, by metric and labels. */
  readonly #values = new Map<LockMetric, Map<string, Value>>();
  readonly #stops: (() => void)[];

  /** @param record makes the function that records values of a metric */
  constructor(record: (metric: AddedMetric) => AddValue) {
    const labels = this.#labels;
    const [acquireDuration, holdDuration] = [record('acquireDuration'), record('holdDuration')];
    const [renewals, losses] = [record('renewals'), record('losses')];
    const storeRequestDuration = record('storeRequestDuration');
    this.#stops = [
      watch(ACQUIRE, {
        start: (call) => {
          this.#asking.set(call, systemRuntime.now().monotonicMs);
        },
        asyncEnd: (call) => {
          this.#asking.delete(call);
          const { outcome = 'failed', waitedMs = 0 } = call;
          acquireDuration(waitedMs / 1_000, { ...labels.of(call), 'holdfast.outcome': outcome });
        },
      }),
      watch(HOLD, {
        start: (hold) => {
          this.#holds.set(hold, systemRuntime.now().monotonicMs);
        },
        asyncEnd: (hold) => {
          this.#holds.delete(hold);
          const { outcome = 'released', heldMs = 0 } = hold;
          holdDuration(heldMs / 1_000, { ...labels.of(hold), 'holdfast.outcome': outcome });
        },
      }),
      watch(RENEW, {
        asyncEnd: ({ leases }) => {
          for (const { outcome = 'unavailable' } of leases)
            renewals(1, { 'holdfast.outcome': outcome });
        },
      }),
      watch(REQUEST, {
        asyncEnd: ({ operation, node, outcome = 'error', durationMs = 0 }) => {
          const of = { 'holdfast.operation': operation, 'holdfast.outcome': outcome };
          storeRequestDuration(durationMs / 1_000, { ...of, ...addressIn(node) });
        },
      }),
    ];
    const onLost = (message: unknown): void => {
      const lost = message as LockEvents['lost'];
      const { 'holdfast.key.template': template = '' } = labels.of(lost);
      losses(1, { 'holdfast.key.template': template, 'holdfast.reason': lost.reason });
    };
    const onceAttempts = record('onceAttempts');
    const onOnce = (message: unknown): void => {
      const event = message as LockEvents['onceAttempt'];
      if (event.phase === 'began') return;
      const { 'holdfast.key.template': template = '' } = labels.of(event);
      onceAttempts(1, { 'holdfast.key.template': template, 'holdfast.outcome': event.outcome });
    };
    for (const [{ name }, listener] of [
      [EVENTS.lost, onLost],
      [EVENTS.onceAttempt, onOnce],
    ] as const) {
      subscribe(name, listener);
      this.#stops.push(() => void unsubscribe(name, listener));
    }
  }

  /** The values of a metric now. Labels that had one before have 0 if nothing is left of them. */
  read(id: ReadMetric): readonly Value[] {
    return isOfNodes(id) ? readNodes(id) : this.#readLocks(id);
  }

  #readLocks(id: LockMetric): readonly Value[] {
    const values = this.#values.get(id) ?? new Map<string, Value>();
    this.#values.set(id, values);
    for (const [name, { labels }] of values) values.set(name, { value: 0, labels });
    const now = systemRuntime.now().monotonicMs;
    const isAge = METRICS[id].kind === 'gauge';
    for (const [subject, begunMs] of this.#subjectsOf(id)) {
      const labels = this.#labels.of(subject);
      const name = JSON.stringify(labels);
      const before = values.get(name)?.value ?? 0;
      const value = isAge ? Math.max(before, (now - begunMs) / 1_000) : before + 1;
      values.set(name, { value, labels });
    }
    return [...values.values()];
  }

  *#subjectsOf(id: LockMetric): Generator<readonly [LockSubject, number]> {
    if (id === 'lockActive' || id === 'lockOldest') yield* this.#holds;
    else for (const entry of this.#asking) if (entry[0].hasWaited) yield entry;
  }

  stop(): void {
    for (const stop of this.#stops) stop();
    this.#asking.clear();
    this.#holds.clear();
  }
}

interface Watcher<Context> {
  readonly start?: (context: Context) => unknown;
  readonly asyncEnd: (context: Context) => unknown;
}

/** Subscribes to the beginning and the end of each trace. Returns a function that unsubscribes. */
export function watch<Context extends object>(
  channel: Tracing<Context>,
  { start, asyncEnd }: Watcher<Context>,
): () => void {
  // Node accepts some of the subscribers; its types require all.
  const subscribers = { ...(start && { start }), asyncEnd } as TracingChannelSubscribers<Context>;
  channel.subscribe(subscribers);
  return () => {
    channel.unsubscribe(subscribers);
  };
}
