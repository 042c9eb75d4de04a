import type { Meter, ObservableResult } from '@opentelemetry/api';
import { MetricsFeed } from '../observe/feed.js';
import { METRICS, type AddedMetric, type ReadMetric } from '../observe/metrics.js';

/** Reports the metrics. Returns what stops it. */
export function meterLocks(meter: Meter): () => void {
  const histogram = (id: 'acquireDuration' | 'holdDuration' | 'storeRequestDuration') => {
    const { name, unit, help: description, buckets } = METRICS[id];
    const advice = { explicitBucketBoundaries: [...buckets] };
    return meter.createHistogram(name, { unit, description, advice });
  };
  const counter = (id: 'renewals' | 'losses') => {
    const { name, unit, help: description } = METRICS[id];
    const counting = meter.createCounter(name, { unit, description });
    return { record: counting.add.bind(counting) };
  };
  const added: Record<AddedMetric, ReturnType<typeof histogram> | ReturnType<typeof counter>> = {
    acquireDuration: histogram('acquireDuration'),
    holdDuration: histogram('holdDuration'),
    storeRequestDuration: histogram('storeRequestDuration'),
    renewals: counter('renewals'),
    losses: counter('losses'),
  };
  const feed = new MetricsFeed((metric, value, labels) => {
    added[metric].record(value, labels);
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
