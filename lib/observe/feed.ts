import { subscribe, unsubscribe, type TracingChannelSubscribers } from 'node:diagnostics_channel';
import { BriefMap } from '../collections/brief-map.js';
import { ACQUIRE, EVENTS, HOLD, RENEW, REQUEST, type Tracing } from './channels.js';
import type { AcquireContext, HoldContext, LockSubject } from './contexts.js';
import type { LockEvents } from './lock-events.js';
import { SubjectLabels, type AddedMetric, type Labels } from './metrics.js';

/** Records a value of a metric. Durations are in seconds. */
export type AddValue = (value: number, labels: Labels) => void;

interface Count {
  count: number;
  readonly labels: Labels;
}

type Counted = Readonly<Count>;

/** Feeds metrics from the channels of this process until it is stopped. */
export class MetricsFeed {
  readonly #labels = new SubjectLabels();
  readonly #asking = new BriefMap<AcquireContext, true>();
  readonly #holds = new BriefMap<HoldContext, true>();
  readonly #lockCounts = new Map<string, Count>();
  readonly #waiterCounts = new Map<string, Count>();
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
          this.#asking.set(call, true);
        },
        asyncEnd: (call) => {
          this.#asking.delete(call);
          const { outcome = 'failed', waitedMs = 0 } = call;
          acquireDuration(waitedMs / 1_000, { ...labels.of(call), 'holdfast.outcome': outcome });
        },
      }),
      watch(HOLD, {
        start: (hold) => {
          this.#holds.set(hold, true);
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
        asyncEnd: ({ operation, node, durationMs = 0 }) => {
          const of = { 'holdfast.operation': operation, ...addressIn(node) };
          storeRequestDuration(durationMs / 1_000, of);
        },
      }),
    ];
    const onLost = (message: unknown): void => {
      const lost = message as LockEvents['lost'];
      const { 'holdfast.key.template': template = '' } = labels.of(lost);
      losses(1, { 'holdfast.key.template': template, 'holdfast.reason': lost.reason });
    };
    subscribe(EVENTS.lost.name, onLost);
    this.#stops.push(() => void unsubscribe(EVENTS.lost.name, onLost));
  }

  /** The locks that are held, counted when they are read. */
  readonly lockActive = (): readonly Counted[] => this.#count(this.#holds.keys(), this.#lockCounts);

  /** The calls that wait. */
  readonly waiterActive = (): readonly Counted[] =>
    this.#count(
      [...this.#asking.keys()].filter(({ hasWaited }) => hasWaited),
      this.#waiterCounts,
    );

  stop(): void {
    for (const stop of this.#stops) stop();
    this.#asking.clear();
    this.#holds.clear();
  }

  /** Also returns labels that were counted before, with 0. */
  #count(subjects: Iterable<LockSubject>, counts: Map<string, Count>): readonly Counted[] {
    for (const each of counts.values()) each.count = 0;
    for (const subject of subjects) {
      const labels = this.#labels.of(subject);
      const name = JSON.stringify(labels);
      const known = counts.get(name);
      if (known === undefined) counts.set(name, { count: 1, labels });
      else known.count += 1;
    }
    return [...counts.values()];
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

/** `host:port`; of a Cluster its nodes. */
function addressIn(node: string): Labels {
  const [, address, port] = /^([^,\s]+):(\d+)$/.exec(node) ?? [];
  return {
    'server.address': address ?? node,
    'server.port': port === undefined ? '' : Number(port),
  };
}
