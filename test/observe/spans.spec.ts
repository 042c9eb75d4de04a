import { createRequire } from 'node:module';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { context, SpanKind, SpanStatusCode, trace, type Span } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base';
import { LockNotAcquiredError } from 'nestjs-holdfast';
import { observeWithOpenTelemetry, type OpenTelemetryOptions } from 'nestjs-holdfast/opentelemetry';
import { ACQUIRE, HOLD, WORK } from '../../lib/observe/channels.js';
import type { AcquireContext, HoldContext } from '../../lib/observe/contexts.js';

const { version } = createRequire(import.meta.url)('../../package.json') as {
  readonly version: string;
};

const exporter = new InMemorySpanExporter();
const tracerProvider = new BasicTracerProvider({
  spanProcessors: [new SimpleSpanProcessor(exporter)],
});
let stop = (): void => undefined;

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});

afterAll(() => {
  context.disable();
});

afterEach(() => {
  stop();
  exporter.reset();
});

const observe = (options: OpenTelemetryOptions = {}): void => {
  stop = observeWithOpenTelemetry({ tracerProvider, ...options });
};

const finished = (): readonly ReadableSpan[] => exporter.getFinishedSpans();

const idOf = (span: Span | ReadableSpan | undefined): string | undefined =>
  span?.spanContext().spanId;

/** A call for a lock, as the engine publishes it. */
async function call(facts: Partial<AcquireContext> = {}, during = (): unknown => 1): Promise<void> {
  const subject = {
    keys: ['order:42'],
    mode: 'exclusive',
    nested: false,
    hasWaited: false,
  } as const;
  await ACQUIRE.tracePromise(async () => during(), { ...subject, ...facts });
}

/** A lock that is held, and the work under it. */
async function hold(
  facts: Partial<HoldContext> = {},
  work = (): unknown => 1,
): Promise<HoldContext> {
  const subject = { keys: ['order:42'], mode: 'exclusive', fencingToken: 7 } as const;
  const held: HoldContext = { ...subject, outcome: 'released', ...facts };
  await HOLD.tracePromise(async () => WORK.runStores(held, work), held);
  return held;
}

describe('the span of a call', () => {
  it('has the verb as its name, and says how it ended', async () => {
    observe();
    await call({ outcome: 'granted', fencingToken: 7 });
    expect(finished()).toMatchObject([
      {
        name: 'acquire',
        kind: SpanKind.INTERNAL,
        status: { code: SpanStatusCode.UNSET },
        links: [],
        events: [],
        instrumentationScope: { name: 'nestjs-holdfast', version },
      },
    ]);
    expect(finished()[0]?.attributes).toEqual({
      'holdfast.mode': 'exclusive',
      'holdfast.nested': false,
      'holdfast.outcome': 'granted',
    });
  });

  it('is named after the template, else after the method, and has what is known', async () => {
    observe();
    const known = { service: 'orders', method: 'Orders.pay', mode: 'limit:3' } as const;
    await call({ ...known, template: 'order:<id>', nested: true });
    await call({ method: 'Orders.pay' });
    expect(finished().map(({ name }) => name)).toEqual([
      'acquire order:<id>',
      'acquire Orders.pay',
    ]);
    expect(finished()[0]?.attributes).toEqual({
      'holdfast.service': 'orders',
      'holdfast.method': 'Orders.pay',
      'holdfast.mode': 'limit',
      'holdfast.key.template': 'order:<id>',
      'holdfast.nested': true,
    });
  });

  it('names keys and the fencing token where that is asked for', async () => {
    observe({ keys: true });
    await call({ outcome: 'granted', fencingToken: 7 });
    await call({ outcome: 'refused' });
    const [granted, refused] = finished().map(({ attributes }) => attributes);
    expect(granted).toMatchObject({ 'holdfast.keys': ['order:42'], 'holdfast.fencing_token': 7 });
    expect(Object.keys(refused ?? {})).not.toContain('holdfast.fencing_token');
  });

  it.each([
    ['refused', SpanStatusCode.UNSET],
    ['closed', SpanStatusCode.UNSET],
    ['aborted', SpanStatusCode.UNSET],
    ['unavailable', SpanStatusCode.ERROR],
    ['deadlock', SpanStatusCode.ERROR],
    ['failed', SpanStatusCode.ERROR],
  ] as const)('that ends as %s has the status %d', async (outcome, code) => {
    observe();
    await call({ outcome, error: new Error('why') });
    const events = code === SpanStatusCode.ERROR ? [{ name: 'exception' }] : [];
    expect(finished()).toMatchObject([{ status: { code }, events }]);
    expect(finished()[0]?.attributes).toMatchObject({
      'holdfast.outcome': outcome,
      'error.type': 'Error',
    });
  });

  it.each<[string, string, unknown]>([
    [
      'LOCK_NOT_ACQUIRED',
      'The lock is held by another caller.',
      new LockNotAcquiredError({ keys: ['order:42'], retryAfterMs: 0, waitedMs: 0 }),
    ],
    ['TypeError', 'no money', new TypeError('no money')],
    ['Error', 'no number', Object.assign(new Error('no number'), { code: 42 })],
    ['_OTHER', "'no money'", 'no money'],
  ])('has the error type %s', async (type, message, error) => {
    observe();
    await call({ outcome: 'failed', error });
    const [span] = finished();
    expect(span?.attributes['error.type']).toBe(type);
    expect(span?.events[0]?.attributes?.['exception.message']).toBe(message);
  });

  it('is a child of the active span, and active in the call', async () => {
    observe();
    const tracer = tracerProvider.getTracer('application');
    let active: Span | undefined;
    const outer = tracer.startSpan('outer');
    await context.with(trace.setSpan(context.active(), outer), () =>
      call({}, () => (active = trace.getActiveSpan())),
    );
    const [span] = finished();
    expect(span?.parentSpanContext?.spanId).toBe(idOf(outer));
    expect(idOf(active)).toBe(idOf(span));
  });
});

describe('the span of a hold', () => {
  it('is active in the work, and in nothing else', async () => {
    observe();
    let active: Span | undefined;
    const held = await hold({}, () => (active = trace.getActiveSpan()));
    const [span] = finished();
    expect(span).toMatchObject({ name: 'run', status: { code: SpanStatusCode.UNSET }, links: [] });
    expect(span?.attributes).toEqual({
      'holdfast.mode': 'exclusive',
      'holdfast.outcome': 'released',
    });
    expect(idOf(active)).toBe(idOf(span));
    expect(held.keys).toEqual(['order:42']);
    expect(trace.getActiveSpan()).toBeUndefined();
  });

  it('links to the hold that was handed on', async () => {
    observe();
    const follows = await hold();
    await hold({ follows });
    const [first, second] = finished();
    expect(second?.links.map(({ context: linked }) => linked.spanId)).toEqual([idOf(first)]);
  });

  it('is no fault when its work was refused another lock', async () => {
    observe();
    await hold({
      error: new LockNotAcquiredError({ keys: ['order:42'], retryAfterMs: 0, waitedMs: 0 }),
    });
    expect(finished()).toMatchObject([
      {
        status: { code: SpanStatusCode.UNSET },
        events: [],
        attributes: { 'error.type': 'LOCK_NOT_ACQUIRED' },
      },
    ]);
  });

  it('says why the lock was lost, which is a fault', async () => {
    observe();
    await hold({ outcome: 'lost', reason: 'expired', error: new Error('lost') });
    expect(finished()).toMatchObject([
      {
        status: { code: SpanStatusCode.ERROR },
        attributes: { 'holdfast.outcome': 'lost', 'holdfast.reason': 'expired' },
      },
    ]);
  });
});

describe('what began before it is observed', () => {
  it('has no span, and its work keeps the active one', async () => {
    const earlier = await hold();
    const outer = tracerProvider.getTracer('application').startSpan('outer');
    let active: Span | undefined;
    await HOLD.tracePromise(async () => {
      observe();
      await context.with(trace.setSpan(context.active(), outer), async () => {
        WORK.runStores(earlier, () => (active = trace.getActiveSpan()));
      });
    }, earlier);
    HOLD.asyncEnd.publish(earlier);
    await hold({ follows: earlier });
    expect(idOf(active)).toBe(idOf(outer));
    expect(finished()).toMatchObject([{ name: 'run', links: [] }]);
  });
});

describe('what is no longer observed', () => {
  it('has no span, and nothing is subscribed', async () => {
    observe();
    stop();
    let active: Span | undefined;
    await call();
    await hold({}, () => (active = trace.getActiveSpan()));
    expect(finished()).toEqual([]);
    expect(active).toBeUndefined();
    for (const { hasSubscribers } of [ACQUIRE.start, ACQUIRE.asyncEnd, HOLD.start, WORK])
      expect(hasSubscribers).toBe(false);
  });
});
