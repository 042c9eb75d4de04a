/**
 * A process with our spans, and those that OpenTelemetry's instrumentation of ioredis makes. Takes a lock twice, for a caller that has a
 * span. Prints each span with its parent. Argument: the URL of Redis.
 */
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

const [redis = ''] = process.argv.slice(2);
const exporter = new InMemorySpanExporter();
const tracerProvider = new BasicTracerProvider({
  spanProcessors: [new SimpleSpanProcessor(exporter)],
});
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(tracerProvider);
const instrumentation = new IORedisInstrumentation({ dbStatementSerializer: (name) => name });
instrumentation.setTracerProvider(tracerProvider);

// As in an application: after the instrumentation, which changes ioredis when that is loaded.
const { LockEngine } = await import('../../lib/engine/lock-engine.js');
const { observeWithOpenTelemetry } = await import('../../lib/opentelemetry/index.js');
const { systemRuntime } = await import('../../lib/time/runtime.js');

const log = { warn: () => undefined, error: () => undefined };
const locks = new LockEngine({ redis }, { runtime: systemRuntime, log });
await locks.open();
observeWithOpenTelemetry({ tracerProvider });
const tracer = tracerProvider.getTracer('application');
for (let time = 0; time < 2; time += 1) {
  exporter.reset(); // the server knows the scripts at the second time
  await tracer.startActiveSpan('caller', async (span) => {
    await locks.run('order:42', () => undefined);
    span.end();
  });
}
const spans = exporter.getFinishedSpans();
const nameOf = (id: string | undefined): string | undefined =>
  spans.find((span) => span.spanContext().spanId === id)?.name;
const shown = spans.map((span) => ({
  name: span.name,
  parent: nameOf(span.parentSpanContext?.spanId) ?? '',
  text: span.attributes['db.query.text'],
}));
await locks.shutdown(0);
console.log(JSON.stringify(shown));
