import type { Meter, ObservableResult } from '@opentelemetry/api';
import { MetricsFeed } from '../observe/feed.js';
import { METRICS, type Metric, type ReadMetric } from '../observe/metrics.js';

/** Reports the metrics. Returns what stops it. */
export function meterLocks(meter: Meter): () => void {
  const feed = new MetricsFeed((id) => {
    const { name, kind, unit, help: description, buckets = [] }: Metric = METRICS[id];
    if (kind === 'counter') {
      const counter = meter.createCounter(name, { unit, description });
      return counter.add.bind(counter);
    }
    const advice = { explicitBucketBoundaries: [...buckets] };
    const histogram = meter.createHistogram(name, { unit, description, advice });
    return histogram.record.bind(histogram);
  });
  const read = (id: ReadMetric): (() => void) => {
    const { name, unit, help: description } = METRICS[id];
    const gauge = meter.createObservableUpDownCounter(name, { unit, description });
    const observe = (result: ObservableResult): void => {
      for (const { count, labels } of feed[id]()) result.observe(count, labels);
    };
    gauge.addCallback(observe);
    return () => {
      gauge.removeCallback(observe);
    };
  };
  const stops = [read('lockActive'), read('waiterActive')];
  return () => {
    feed.stop();
    for (const stop of stops) stop();
  };
}
