import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type ScopeMetrics,
} from '@opentelemetry/sdk-metrics';

/** A provider whose metrics are exported when a test asks for them, and never by a timer. */
export function metricsInMemory() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const exported = async (): Promise<readonly ScopeMetrics[]> => {
    await reader.forceFlush();
    return exporter.getMetrics().at(-1)?.scopeMetrics ?? [];
  };
  return { meterProvider, exported };
}
