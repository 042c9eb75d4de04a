import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { load } from 'js-yaml';
import { labelIn, nameIn } from '../../../lib/prometheus/names.js';
import { METRICS } from '../../../lib/observe/metrics.js';
import { ensurePromtool } from '../../../scripts/promtool.mjs';

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const RULES = file('../../../docs/grafana/alerts.yml');
const INCIDENTS = file('./incidents.yml');
const DASHBOARD = file('../../../docs/grafana/holdfast.json');

interface Asks {
  readonly expr: string;
}

interface Dashboard {
  readonly panels: readonly { readonly targets: readonly Asks[] }[];
  readonly annotations: { readonly list: readonly Asks[] };
}

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string }[] }[];
}

interface Incidents {
  readonly tests: readonly {
    readonly input_series: readonly { readonly series: string }[];
    readonly alert_rule_test: readonly {
      readonly alertname: string;
      readonly exp_alerts?: readonly unknown[];
    }[];
  }[];
}

const promtool = promisify(execFile);

it('each alert fires in its incident, and not before or without it', async () => {
  const { stdout } = await promtool(
    ensurePromtool(() => undefined),
    [...['test', 'rules', INCIDENTS]],
  );
  expect(stdout).toContain('SUCCESS');
}, 120_000);

it('each alert has an incident in which it fires, and one in which it does not', () => {
  const { groups } = load(readFileSync(RULES, 'utf8')) as Rules;
  const { tests } = load(readFileSync(INCIDENTS, 'utf8')) as Incidents;
  const cases = tests.flatMap(({ alert_rule_test: rules }) => rules);
  const named = (fires: boolean): string[] =>
    cases
      .filter(({ exp_alerts: alerts = [] }) => alerts.length > 0 === fires)
      .map(({ alertname }) => alertname);
  for (const { alert } of groups.flatMap(({ rules }) => rules)) {
    expect(named(true)).toContain(alert);
    expect(named(false)).toContain(alert);
  }
});

it('the series of the incidents are those that are exported', () => {
  const { tests } = load(readFileSync(INCIDENTS, 'utf8')) as Incidents;
  const exported = new Map(
    Object.values(METRICS).map((metric) => [nameIn(metric), metric.labels.map(labelIn)]),
  );
  for (const { series } of tests.flatMap(({ input_series: all }) => all)) {
    const labels = exported.get(series.replace(/\{.*/, '').replace(/_(bucket|count|sum)$/, ''));
    expect([series, labels]).toEqual([series, expect.any(Array)]);
    for (const [, label] of series.matchAll(/[{,](\w+)="/g))
      expect([...(labels ?? []), 'job', 'instance', 'le']).toContain(label);
  }
});

it('Prometheus understands what the dashboard asks', async () => {
  const { panels, annotations } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as Dashboard;
  const asked = [
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ...annotations.list.map(({ expr }) => expr),
  ];
  const rules = asked.map((expr, index) => ({
    record: `panel:${String(index)}`,
    expr: expr.replaceAll(/\$__(range|rate_interval)/g, '1h'),
  }));
  const folder = mkdtempSync(join(tmpdir(), 'dashboard-'));
  try {
    const path = join(folder, 'rules.json');
    writeFileSync(path, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    const { stdout } = await promtool(
      ensurePromtool(() => undefined),
      ['check', 'rules', path],
    );
    expect(stdout).toContain(`SUCCESS: ${String(asked.length)} rules found`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}, 120_000);
