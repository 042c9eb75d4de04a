import { Counter, Gauge, Histogram, register as globalRegister, type Registry } from 'prom-client';
import { MetricsFeed } from '../observe/feed.js';
import {
  METRICS,
  READ_METRICS,
  type Labels,
  type Metric,
  type ReadMetric,
} from '../observe/metrics.js';
import { labelIn, nameIn } from './names.js';

/** Options of `registerLockMetrics`. */
export interface LockMetricsOptions {
  /** Default: the global registry of prom-client. */
  readonly register?: Registry;
  /** Put before the name of each metric. Default: none. */
  readonly prefix?: string;
}

/**
 * Registers the metrics of all locks of this process with prom-client. Call it once for each registry. Returns a
 * function that stops the metrics and removes them from the registry.
 *
 * @throws Error when the registry already has one of the metrics
 * @example
 * ```ts
 * import { registerLockMetrics } from 'nestjs-holdfast/prometheus';
 *
 * registerLockMetrics();
 * ```
 */
export function registerLockMetrics(options: LockMetricsOptions = {}): () => void {
  const { register = globalRegister, prefix = '' } = options;
  const registers = [register];
  const names: string[] = [];
  const common = (id: keyof typeof METRICS) => {
    const { help, labels } = METRICS[id];
    const name = prefix + nameIn(METRICS[id]);
    names.push(name);
    return { name, help, labelNames: labels.map(labelIn), registers };
  };
  const feed = new MetricsFeed((id) => {
    const { kind, buckets = [] }: Metric = METRICS[id];
    if (kind === 'counter') {
      const counter = new Counter(common(id));
      return (value, labels) => {
        counter.inc(labelsIn(labels), value);
      };
    }
    const histogram = new Histogram({ ...common(id), buckets: [...buckets] });
    return (value, labels) => {
      histogram.observe(labelsIn(labels), value);
    };
  });
  const gauge = (id: ReadMetric): void => {
    new Gauge({
      ...common(id),
      collect() {
        this.reset();
        for (const { value, labels } of feed.read(id)) this.set(labelsIn(labels), value);
      },
    });
  };
  for (const id of READ_METRICS) gauge(id);
  return () => {
    feed.stop();
    for (const name of names) register.removeSingleMetric(name);
  };
}

const labelsIn = (labels: Labels): Record<string, string | number> =>
  Object.fromEntries(
    Object.entries(labels).map(([label, value]) => [labelIn(label as keyof Labels), value]),
  );
