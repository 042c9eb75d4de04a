import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { load } from 'js-yaml';
import { nameIn } from '../../../lib/prometheus/names.js';
import { METRICS } from '../../../lib/observe/metrics.js';
import { ensurePromtool } from '../../../scripts/promtool.mjs';

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const RULES = file('../../../docs/grafana/alerts.yml');
const INCIDENTS = file('./incidents.yml');

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
  const exported = Object.values(METRICS).map(nameIn);
  for (const { series } of tests.flatMap(({ input_series: all }) => all))
    expect(exported).toContain(series.replace(/\{.*/, '').replace(/_(bucket|count|sum)$/, ''));
});
