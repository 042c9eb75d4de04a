import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Injectable, Logger, Post } from '@nestjs/common';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base';
import { Registry } from 'prom-client';
import { WithLock } from 'nestjs-holdfast';
import { observeWithOpenTelemetry } from 'nestjs-holdfast/opentelemetry';
import { registerLockMetrics } from 'nestjs-holdfast/prometheus';
import { METRICS } from '../../lib/observe/metrics.js';
import { closeHttpApps, startHttpApp } from '../nest/http-app.js';
import { deferred, eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { metricsInMemory } from './metrics-in-memory.js';

const gate = { entered: deferred(), open: deferred() };

@Injectable()
class Orders {
  @WithLock('order:<orderId>', { wait: '20s' })
  async pay(orderId: string): Promise<string> {
    gate.entered.resolve();
    await gate.open.promise;
    trace.getTracer('application').startSpan('payment').end();
    return orderId;
  }

  @WithLock('refund')
  async refund(): Promise<void> {
    throw new TypeError('no money');
  }
}

@Controller()
class OrdersController {
  readonly #orders: Orders;

  constructor(orders: Orders) {
    this.#orders = orders;
  }

  @Post('pay')
  pay(): Promise<string> {
    return this.#orders.pay('42');
  }

  @Post('refund')
  refund(): Promise<void> {
    return this.#orders.refund();
  }

  @Post('locked')
  @WithLock('order:42')
  async locked(): Promise<void> {
    return undefined;
  }
}
Reflect.defineMetadata('design:paramtypes', [Orders], OrdersController);

const spanExporter = new InMemorySpanExporter();
const stops: (() => unknown)[] = [];

beforeAll(() => {
  Logger.overrideLogger(false);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});

afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  await closeHttpApps();
  spanExporter.reset();
  trace.disable();
});

async function start(keys = false) {
  gate.entered = deferred();
  gate.open = deferred();
  const server = await RedisServer.start();
  const tracerProvider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(spanExporter)],
  });
  trace.setGlobalTracerProvider(tracerProvider);
  const { meterProvider, exported } = metricsInMemory();
  const register = new Registry();
  const stopMetrics = registerLockMetrics({ register });
  stops.push(
    observeWithOpenTelemetry({ tracerProvider, meterProvider, keys }),
    stopMetrics,
    () => meterProvider.shutdown(),
    () => server.stop(),
  );
  const http = await startHttpApp(
    { controllers: [OrdersController], providers: [Orders] },
    { options: { redis: server.url, nodeTimeout: '200ms', handoff: { tenure: '20s' } } },
  );
  const spans = (name: string): readonly ReadableSpan[] =>
    spanExporter.getFinishedSpans().filter((span) => span.name === name);
  const metrics = async () => (await exported()).flatMap(({ metrics: each }) => each);
  return { ...http, server, register, spans, metrics, stopMetrics };
}

describe('an application under contention', () => {
  it('has spans with parents, links and outcomes', async () => {
    const { post, spans, locks } = await start();
    const first = post('/pay');
    await gate.entered.promise;
    expect((await post('/locked')).status).toBe(409);
    const waiting = new Promise((resolve) => locks.on('waiting', resolve));
    const handedOff = new Promise((resolve) => locks.on('handedOff', resolve));
    const second = post('/pay');
    await waiting;
    gate.open.resolve();
    await Promise.all([first, second, handedOff]);
    const [one, two] = spans('acquire order:<orderId>');
    expect(one?.attributes).toEqual({
      'holdfast.mode': 'exclusive',
      'holdfast.key.template': 'order:<orderId>',
      'holdfast.method': 'Orders.pay',
      'holdfast.nested': false,
      'holdfast.outcome': 'granted',
    });
    const [holder, follower] = spans('run order:<orderId>');
    expect(two?.attributes['holdfast.outcome']).toBe('granted');
    expect(holder?.links).toEqual([]);
    expect(follower?.links.map(({ context: linked }) => linked.spanId)).toEqual([
      holder?.spanContext().spanId,
    ]);
    const payments = spans('payment').map(({ parentSpanContext }) => parentSpanContext?.spanId);
    expect(payments).toEqual([holder?.spanContext().spanId, follower?.spanContext().spanId]);
    const [refused] = spans('acquire order:42');
    expect(refused?.attributes).toMatchObject({
      'holdfast.outcome': 'refused',
      'error.type': 'LOCK_NOT_ACQUIRED',
    });
    expect(refused?.status.code).toBe(0);
    expect(refused?.events).toEqual([]);
    await post('/refund');
    const [failed] = spans('run refund');
    expect(failed?.attributes['error.type']).toBe('TypeError');
    expect(failed?.events.map(({ name }) => name)).toEqual(['exception']);
    expect(failed?.status.code).toBe(2);
    const everything = JSON.stringify(
      spanExporter.getFinishedSpans().map(({ name, attributes }) => [name, attributes]),
    );
    expect(everything).not.toMatch(/fencing|keys"|holdfast:/);
  });

  it('has spans that name keys where that is asked for', async () => {
    const { post, spans } = await start(true);
    gate.open.resolve();
    await post('/pay');
    expect(spans('run order:<orderId>')[0]?.attributes).toMatchObject({
      'holdfast.keys': ['order:42'],
      'holdfast.fencing_token': expect.any(Number),
    });
  });

  it('has the same metrics in OpenTelemetry and Prometheus, also of an outage and a loss', async () => {
    const { post, metrics, register, server, locks, stopMetrics } = await start();
    const first = post('/pay');
    await gate.entered.promise;
    const second = post('/pay');
    await eventually(async () => {
      const text = await register.metrics();
      return text.includes('holdfast_waiter_active{template="order:<orderId>",mode="exclusive"} 1');
    });
    for (const age of ['holdfast_waiter_oldest_seconds', 'holdfast_lock_oldest_seconds'])
      expect(await register.metrics()).toMatch(
        new RegExp(`${age}\\{template="order:<orderId>",mode="exclusive"\\} (?!0$)[\\d.]`, 'm'),
      );
    expect(await register.metrics()).toContain(
      'holdfast_lock_active{template="order:<orderId>",mode="exclusive"} 1',
    );
    expect((await post('/locked')).status).toBe(409);
    await metrics();
    gate.open.resolve();
    await Promise.all([first, second]);
    await locks.runOnce('mail', () => undefined);
    const lock = await locks.acquire('by-hand', { ttl: '2s' });
    await lock.extend();
    const lost = new Promise((resolve) => locks.on('lost', resolve));
    await server.kill();
    expect((await post('/locked')).status).toBe(503);
    await lost;
    const text = await register.metrics();
    const has = (line: string): void => {
      expect(text).toContain(line);
    };
    has(
      'holdfast_acquire_duration_seconds_count{template="order:<orderId>",mode="exclusive",outcome="granted"} 2',
    );
    has(
      'holdfast_acquire_duration_seconds_count{template="order:42",mode="exclusive",outcome="unavailable"} 1',
    );
    has(
      'holdfast_acquire_duration_seconds_count{template="order:42",mode="exclusive",outcome="refused"}',
    );
    has(
      'holdfast_hold_duration_seconds_count{template="_OTHER",mode="exclusive",outcome="lost"} 1',
    );
    has('holdfast_lock_active{template="order:<orderId>",mode="exclusive"} 0');
    has('holdfast_waiter_active{template="order:<orderId>",mode="exclusive"} 0');
    has('holdfast_once_attempts_total{template="_OTHER",outcome="completed"} 1');
    has('holdfast_waiter_oldest_seconds{template="order:<orderId>",mode="exclusive"} 0');
    has('holdfast_renewals_total{outcome="renewed"} 1');
    has('holdfast_renewals_total{outcome="unavailable"}');
    has('holdfast_losses_total{template="_OTHER",reason="store-unavailable"} 1');
    has(`server_address="127.0.0.1",server_port="${String(server.port)}"`);
    expect(text).not.toMatch(/by-hand/);

    const exported = await metrics();
    expect(exported.map(({ descriptor }) => descriptor.name).sort()).toEqual(
      Object.values(METRICS)
        .map(({ name }) => name)
        .sort(),
    );
    for (const { descriptor, dataPoints } of exported) {
      const metric = Object.values(METRICS).find(({ name }) => name === descriptor.name);
      expect(descriptor.unit).toBe(metric?.unit);
      for (const { attributes } of dataPoints)
        expect(metric?.labels).toEqual(expect.arrayContaining(Object.keys(attributes)));
    }
    stopMetrics();
    expect(await register.metrics()).toBe('\n');
  }, 20_000);
});
