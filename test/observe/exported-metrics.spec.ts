import { createRequire } from 'node:module';
import { afterEach, describe, expect, it } from '@jest/globals';
import { ValueType } from '@opentelemetry/api';
import { DataPointType } from '@opentelemetry/sdk-metrics';
import { register as globalRegister, Registry } from 'prom-client';
import { observeWithOpenTelemetry } from 'nestjs-holdfast/opentelemetry';
import { registerLockMetrics } from 'nestjs-holdfast/prometheus';
import { ACQUIRE, EVENTS, HOLD, RENEW, REQUEST } from '../../lib/observe/channels.js';
import type { RequestContext } from '../../lib/observe/contexts.js';
import { METRICS, READ_METRICS } from '../../lib/observe/metrics.js';
import { OPEN_STORES } from '../../lib/observe/nodes.js';
import { nameIn } from '../../lib/prometheus/names.js';
import { metricsInMemory } from './metrics-in-memory.js';

const SUBJECT = { keys: ['order:42'], mode: 'exclusive', template: 'order:<id>' } as const;
const { version } = createRequire(import.meta.url)('../../package.json') as {
  readonly version: string;
};
const EVERY_METRIC = Object.values(METRICS);

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** One value of each metric, and a lock and a waiter that are there until the end of the test. */
async function publishAll(): Promise<void> {
  const call = { ...SUBJECT, nested: false, hasWaited: true };
  const hold = { ...SUBJECT, fencingToken: 7 };
  ACQUIRE.start.publish(call);
  HOLD.start.publish(hold);
  stops.push(() => {
    ACQUIRE.asyncEnd.publish(call);
    HOLD.asyncEnd.publish(hold);
  });
  const ended = { ...call, outcome: 'granted', waitedMs: 20 } as const;
  await ACQUIRE.tracePromise(async () => 1, ended);
  await HOLD.tracePromise(async () => 1, { ...hold, outcome: 'released', heldMs: 2_000 });
  await RENEW.tracePromise(async () => 1, { leases: [{ ...hold, outcome: 'renewed' }] });
  const asked: RequestContext = { operation: 'acquire', node: 'localhost:6379' };
  asked.outcome = 'answered';
  asked.durationMs = 3;
  await REQUEST.tracePromise(async () => 1, asked);
  EVENTS.lost.publish({ ...hold, reason: 'expired' });
}

const isObserved = (): boolean =>
  [ACQUIRE.asyncEnd, HOLD.asyncEnd, RENEW.asyncEnd, REQUEST.asyncEnd, EVENTS.lost].some(
    ({ hasSubscribers }) => hasSubscribers,
  );

describe('the metrics of Prometheus', () => {
  it('have names, texts, labels, buckets and values', async () => {
    const register = new Registry();
    stops.push(registerLockMetrics({ register }));
    await publishAll();
    const exported = await register.getMetricsAsJSON();
    expect(exported.map(({ name, help }) => [name, help])).toEqual(
      expect.arrayContaining(EVERY_METRIC.map((metric) => [nameIn(metric), metric.help])),
    );
    for (const metric of EVERY_METRIC) {
      if (metric.kind !== 'histogram') continue;
      const { values = [] } = exported.find(({ name }) => name === nameIn(metric)) ?? {};
      const bounds = values.flatMap(({ labels }) => ('le' in labels ? [labels.le] : []));
      expect(bounds).toEqual([...metric.buckets, '+Inf']);
    }
    const text = await register.metrics();
    for (const line of [
      'holdfast_acquire_duration_seconds_sum{template="order:<id>",mode="exclusive",outcome="granted"} 0.02',
      'holdfast_hold_duration_seconds_sum{template="order:<id>",mode="exclusive",outcome="released"} 2',
      'holdfast_store_request_duration_seconds_sum{operation="acquire",outcome="answered",server_address="localhost",server_port="6379"} 0.003',
      'holdfast_renewals_total{outcome="renewed"} 1',
      'holdfast_losses_total{template="order:<id>",reason="expired"} 1',
      'holdfast_lock_active{template="order:<id>",mode="exclusive"} 1',
      'holdfast_waiter_active{template="order:<id>",mode="exclusive"} 1',
    ])
      expect(text).toContain(`${line}\n`);
  });

  it('may have a prefix', async () => {
    const register = new Registry();
    stops.push(registerLockMetrics({ register, prefix: 'shop_' }));
    const names = EVERY_METRIC.map((metric) => `shop_${nameIn(metric)}`);
    expect((await register.getMetricsAsJSON()).map(({ name }) => name).sort()).toEqual(
      names.sort(),
    );
  });

  it('are in the global registry by default, and are removed and fed no more when they are stopped', async () => {
    const stop = registerLockMetrics();
    const names = EVERY_METRIC.map((metric) => nameIn(metric));
    for (const name of names) expect(globalRegister.getSingleMetric(name)).toBeDefined();
    expect(isObserved()).toBe(true);
    stop();
    for (const name of names) expect(globalRegister.getSingleMetric(name)).toBeUndefined();
    expect(isObserved()).toBe(false);
  });
});

describe('the metrics of OpenTelemetry', () => {
  function observe() {
    const { meterProvider, exported } = metricsInMemory();
    const stop = observeWithOpenTelemetry({ meterProvider });
    stops.push(stop, () => meterProvider.shutdown());
    const lastExported = async () => {
      const [only] = await exported();
      return { scope: only?.scope, metrics: only?.metrics ?? [] };
    };
    return { exported: lastExported, stop };
  }

  const TYPES = {
    histogram: DataPointType.HISTOGRAM,
    counter: DataPointType.SUM,
    sum: DataPointType.SUM,
    gauge: DataPointType.GAUGE,
  } as const;

  it('have names, texts, units, types, buckets and values', async () => {
    const { exported } = observe();
    await publishAll();
    const { scope, metrics } = await exported();
    expect(scope).toMatchObject({ name: 'nestjs-holdfast', version });
    const of = ({ name, unit, help, kind }: (typeof METRICS)[keyof typeof METRICS]) => {
      const found = metrics.find(({ descriptor }) => descriptor.name === name);
      expect(found?.descriptor).toMatchObject({
        name,
        unit,
        description: help,
        valueType: ValueType.DOUBLE,
      });
      expect(found?.dataPointType).toBe(TYPES[kind]);
      expect(found?.dataPoints).toHaveLength(1);
      return found;
    };
    for (const [metric, sum] of [
      [METRICS.acquireDuration, 0.02],
      [METRICS.holdDuration, 2],
      [METRICS.storeRequestDuration, 0.003],
    ] as const) {
      const found = of(metric);
      if (found?.dataPointType !== DataPointType.HISTOGRAM) throw new Error('no histogram');
      const [point] = found.dataPoints;
      expect(point?.value).toMatchObject({ sum, buckets: { boundaries: [...metric.buckets] } });
    }
    const acquired = of(METRICS.acquireDuration)?.dataPoints[0];
    expect(acquired?.attributes).toEqual({
      'holdfast.key.template': 'order:<id>',
      'holdfast.mode': 'exclusive',
      'holdfast.outcome': 'granted',
    });
    for (const id of ['renewals', 'losses', 'lockActive', 'waiterActive'] as const)
      expect(of(METRICS[id])?.dataPoints).toMatchObject([{ value: 1 }]);
    for (const id of ['lockOldest', 'waiterOldest'] as const)
      expect(of(METRICS[id])?.dataPoints).toMatchObject([{ value: expect.any(Number) }]);
    const isMonotonic = (id: 'losses' | 'lockActive'): unknown => {
      const found = of(METRICS[id]);
      return found?.dataPointType === DataPointType.SUM && found.isMonotonic;
    };
    expect([isMonotonic('losses'), isMonotonic('lockActive')]).toEqual([true, false]);
  });

  it('are fed and read no more when they are stopped', async () => {
    const { exported, stop } = observe();
    const store = { nodes: [], nodesMissing: 1 };
    OPEN_STORES.add(store);
    stops.push(() => OPEN_STORES.delete(store));
    await publishAll();
    stop();
    expect(isObserved()).toBe(false);
    const { metrics } = await exported();
    const names = metrics.map(({ descriptor }) => descriptor.name);
    for (const id of READ_METRICS) expect(names).not.toContain(METRICS[id].name);
  });
});
