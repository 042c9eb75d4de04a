import { metrics, trace, type MeterProvider, type TracerProvider } from '@opentelemetry/api';
import { meterLocks } from './meter.js';
import { traceLocks } from './spans.js';

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
  const stopSpans = traceLocks(tracerProvider.getTracer(NAME), keys);
  const stopMetrics = meterLocks(meterProvider.getMeter(NAME));
  return () => {
    stopSpans();
    stopMetrics();
  };
}
