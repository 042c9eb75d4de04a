import {
  metrics,
  trace,
  type Meter,
  type MeterProvider,
  type ObservableResult,
  type TracerProvider,
} from '@opentelemetry/api';
import { MetricsFeed } from '../observe/feed.js';
import { METRICS, READ_METRICS, type Metric, type ReadMetric } from '../observe/metrics.js';
import { traceLocks } from './spans.js';
import { VERSION } from './version.js';

/** Options of `observeWithOpenTelemetry`. */
export interface OpenTelemetryOptions {
  /** Default: the global one. */
  readonly tracerProvider?: TracerProvider;
  /** Default: the global one. */
  readonly meterProvider?: MeterProvider;
  /** Whether spans name keys and fencing tokens. Metrics never do. Default: `false`. */
  readonly keys?: boolean;
}

const NAME = 'nestjs-holdfast';

/**
 * Reports all locks of this process to OpenTelemetry: spans `acquire <template>` and `run <template>`, and metrics.
 * Call it once, before or after the application starts. Returns a function that stops the reports.
 *
 * @example
 * ```ts
 * import { observeWithOpenTelemetry } from 'nestjs-holdfast/opentelemetry';
 *
 * const stop = observeWithOpenTelemetry();
 * ```
 */
export function observeWithOpenTelemetry(options: OpenTelemetryOptions = {}): () => void {
  const { tracerProvider = trace, meterProvider = metrics, keys = false } = options;
  const stopSpans = traceLocks(tracerProvider.getTracer(NAME, VERSION), keys);
  const stopMetrics = meterLocks(meterProvider.getMeter(NAME, VERSION));
  return () => {
    stopSpans();
    stopMetrics();
  };
}

/** Reports the metrics. Returns what stops it. */
function meterLocks(meter: Meter): () => void {
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
    const { name, kind, unit, help: description } = METRICS[id];
    const options = { unit, description };
    const gauge =
      kind === 'sum'
        ? meter.createObservableUpDownCounter(name, options)
        : meter.createObservableGauge(name, options);
    const observe = (result: ObservableResult): void => {
      for (const { value, labels } of feed.read(id)) result.observe(value, labels);
    };
    gauge.addCallback(observe);
    return () => {
      gauge.removeCallback(observe);
    };
  };
  const stops = READ_METRICS.map(read);
  return () => {
    feed.stop();
    for (const stop of stops) stop();
  };
}
