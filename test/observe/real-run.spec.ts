import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Injectable, Logger } from '@nestjs/common';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { load } from 'js-yaml';
import { Leader, LockService, NonRetryableError, WithLock } from 'nestjs-holdfast';
import { LockAdmin, LockAdminModule } from 'nestjs-holdfast/admin';
import { observeWithOpenTelemetry } from 'nestjs-holdfast/opentelemetry';
import { registerLockMetrics } from 'nestjs-holdfast/prometheus';
import { Registry } from 'prom-client';
import { METRICS } from '../../lib/observe/metrics.js';
import { nameIn } from '../../lib/prometheus/names.js';
import { closeHttpApps, startHttpApp } from '../nest/http-app.js';
import { deferred, eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  await closeHttpApps();
  for (const stop of stops.splice(0).reverse()) await stop();
});

const read = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

interface Relabeling {
  readonly action?: 'labelmap';
  readonly regex: string;
  readonly replacement?: string;
}

interface Asks {
  readonly expr: string;
}

const [, scrapeConfig = ''] =
  /```yaml\n(scrape_configs[^]*?)```/.exec(read('docs/telemetry.md')) ?? [];
const {
  scrape_configs: [{ metric_relabel_configs: relabelings }],
} = load(scrapeConfig) as {
  readonly scrape_configs: readonly [{ readonly metric_relabel_configs: readonly Relabeling[] }];
};

const { groups } = load(read('docs/grafana/alerts.yml')) as {
  readonly groups: readonly { readonly rules: readonly Asks[] }[];
};
const dashboard = JSON.parse(read('docs/grafana/holdfast.json')) as {
  readonly panels: readonly { readonly targets: readonly Asks[] }[];
  readonly annotations: { readonly list: readonly Asks[] };
};

/** Everything that the rules and the dashboard ask Prometheus. */
const asked = [
  ...groups.flatMap(({ rules }) => rules),
  ...dashboard.panels.flatMap(({ targets }) => targets),
  ...dashboard.annotations.list,
].map(({ expr }) => expr);

/** A line of a scrape: the name of its series, and its labels. */
interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

const seriesIn = (text: string): readonly Series[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('holdfast_'))
    .map((line) => ({
      name: /^\w+/.exec(line)?.[0] ?? '',
      labels: Object.fromEntries(
        [...line.matchAll(/[{,](\w+)="([^"]*)"/g)].map(([, label = '', value = '']) => [
          label,
          value,
        ]),
      ),
    }));

/** As Prometheus renames what it scrapes: an expression matches the whole. */
function relabeled({ name, labels }: Series): Series {
  const renamed = { name, labels: { ...labels } };
  for (const { action, regex, replacement = '$1' } of relabelings) {
    const whole = new RegExp(`^(?:${regex})$`);
    const to = replacement.replaceAll(/\$\{(\d)\}/g, '$$$1');
    if (action === 'labelmap') {
      for (const [label, value] of Object.entries(labels))
        if (whole.test(label)) renamed.labels[label.replace(whole, to)] = value;
    } else if (whole.test(renamed.name)) renamed.name = renamed.name.replace(whole, to);
  }
  return renamed;
}

/** What the selectors and groupings of an expression name that no series has. */
function missingFrom(all: readonly Series[], expr: string): readonly string[] {
  const [name = ''] = /holdfast_\w+/.exec(expr) ?? [];
  const found = all.filter((series) => series.name === name);
  if (found.length === 0) return [`no series ${name}`];
  const has = (label: string, value: RegExp): boolean =>
    ['job', 'instance'].includes(label) ||
    found.some(({ labels }) => label in labels && value.test(labels[label] ?? ''));
  const matchers = [...expr.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].map(
    ([, label = '', operator, value = '']) =>
      [label, operator?.startsWith('!') || value.startsWith('$') ? '.*' : value] as const,
  );
  const groupings = [...expr.matchAll(/by \(([^)]*)\)/g)]
    .flatMap(([, list = '']) => list.split(/,\s*/))
    .map((label) => [label, '.*'] as const);
  return [...matchers, ...groupings]
    .filter(([label, value]) => !has(label, new RegExp(`^(?:${value})$`)))
    .map(([label, value]) => `no ${label}="${value}" of ${name}`);
}

const gate = { entered: deferred(), open: deferred() };

@Injectable()
class Orders {
  @WithLock('order:<orderId>', { wait: '10s' })
  async pay(orderId: string): Promise<string> {
    gate.entered.resolve();
    await gate.open.promise;
    return orderId;
  }
}

@Injectable()
class Mailbox {
  readonly elected = deferred();

  @Leader('mailbox')
  lead(): void {
    this.elected.resolve();
  }
}

/** An application whose metrics can be scraped in both ways, and that has seen every kind of incident. */
async function afterIncidents() {
  Logger.overrideLogger(false);
  const server = await RedisServer.start();
  stops.push(() => server.stop());
  const register = new Registry();
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const meterProvider = new MeterProvider({ readers: [exporter] });
  stops.push(
    () => meterProvider.shutdown(),
    registerLockMetrics({ register }),
    observeWithOpenTelemetry({ meterProvider }),
  );
  const scraped = createServer((request, response) => {
    if (request.url === '/opentelemetry') exporter.getMetricsRequestHandler(request, response);
    else void register.metrics().then((text) => response.end(text));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => scraped.once('listening', resolve));
  stops.push(() => new Promise((resolve) => scraped.close(resolve)));
  const url = `http://127.0.0.1:${String((scraped.address() as AddressInfo).port)}`;
  const scrape = async (path: string) => seriesIn(await (await fetch(url + path)).text());
  const { app } = await startHttpApp(
    { imports: [LockAdminModule.forRoot()], providers: [Orders, Mailbox] },
    { options: { redis: server.url, nodeTimeout: '200ms' } },
  );
  const [locks, orders, admin] = [app.get(LockService), app.get(Orders), app.get(LockAdmin)];
  await app.get(Mailbox).elected.promise;

  const waiting = new Promise((resolve) => locks.on('waiting', resolve));
  const [first, second] = [orders.pay('42'), gate.entered.promise.then(() => orders.pay('42'))];
  await waiting;
  // A call that waits is only seen while it waits.
  await Promise.all([scrape('/prometheus'), scrape('/opentelemetry')]);
  gate.open.resolve();
  await Promise.all([first, second]);
  await forceRelease(locks, admin);
  await deadlock(locks);
  for (const error of [new Error('again'), new Error('no'), new NonRetryableError('no')]) {
    const key = error instanceof NonRetryableError ? 'mail:2' : 'mail:1';
    const fails = (): never => {
      throw error;
    };
    await locks.runOnce(key, { attempts: 2 }, fails).catch(() => undefined);
  }
  const held = await locks.acquire('report', { ttl: '2s' });
  const lost = new Promise((resolve) => locks.on('lost', resolve));
  await server.kill();
  await expect(locks.tryAcquire('report')).rejects.toThrow();
  await lost;
  expect(held.isHeld).toBe(false);

  return { prometheus: await scrape('/prometheus'), openTelemetry: await scrape('/opentelemetry') };
}

async function forceRelease(locks: LockService, admin: LockAdmin): Promise<void> {
  const lock = await locks.acquire('stuck');
  await admin.release(await admin.describe('stuck'), { reason: 'a test' });
  await eventually(() => !lock.isHeld);
}

/** Two calls that take two keys in different orders. */
async function deadlock(locks: LockService): Promise<void> {
  const both = { a: deferred(), b: deferred() };
  const nested = (outer: 'a' | 'b', inner: 'a' | 'b') =>
    locks.run(outer, async () => {
      both[outer].resolve();
      await both[inner].promise;
      await locks.run(inner, { wait: '5s' }, () => undefined);
    });
  await Promise.allSettled([nested('a', 'b'), nested('b', 'a')]);
}

describe('what the rules and the dashboard ask', () => {
  it('is what a real run exports: with prom-client, and with OpenTelemetry as Prometheus renames it', async () => {
    const { prometheus, openTelemetry } = await afterIncidents();
    const names = Object.values(METRICS).map(nameIn);
    for (const all of [prometheus, openTelemetry.map(relabeled)]) {
      for (const expr of asked) expect([expr, missingFrom(all, expr)]).toEqual([expr, []]);
      const exported = new Set(all.map(({ name }) => name.replace(/_(bucket|sum|count)$/, '')));
      expect([...exported].sort()).toEqual([...names].sort());
    }
    // As they are, they would be missed.
    expect(missingFrom(openTelemetry, asked[1] ?? '')).not.toEqual([]);
    expect(missingFrom(prometheus, 'holdfast_lock_active{mode="none"}')).toHaveLength(1);
  }, 30_000);
});
