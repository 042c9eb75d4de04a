import { describe, expect, it } from '@jest/globals';
import { load } from 'js-yaml';
import { readFileSync } from 'node:fs';
import { METRICS } from '../../lib/observe/metrics.js';
import { labelIn, nameIn } from '../../lib/prometheus/names.js';
import { anchorsOf } from '../claims/docs/links.js';

const read = (name: string): string =>
  readFileSync(new URL(`../../docs/grafana/${name}`, import.meta.url), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: {
    readonly summary: string;
    readonly description: string;
    readonly runbook_url: string;
  };
}

const { groups } = load(read('alerts.yml')) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);

const dashboard = JSON.parse(read('holdfast.json')) as {
  readonly panels: readonly {
    readonly title: string;
    readonly links: readonly { readonly url: string }[];
    readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
  readonly annotations: {
    readonly list: readonly { readonly name: string; readonly expr: string }[];
  };
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly query: string | { readonly query: string };
    }[];
  };
};

const RUNBOOK = 'https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/operations.md#';
const situations = anchorsOf(
  readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8'),
);

/** By the name of a series: the labels that it has. */
const series = new Map<string, readonly string[]>();
for (const metric of Object.values(METRICS)) {
  const labels = metric.labels.map(labelIn);
  const name = nameIn(metric);
  if (metric.kind === 'histogram') {
    series.set(`${name}_bucket`, [...labels, 'le']);
    series.set(`${name}_count`, labels);
    series.set(`${name}_sum`, labels);
  } else series.set(name, labels);
}

/** What Prometheus itself adds. */
const OF_PROMETHEUS = ['job', 'instance'];

/** What an expression gets wrong. */
function faultsIn(expr: string): readonly string[] {
  const names = new Set(expr.match(/holdfast_\w+/g));
  const [name = ''] = names;
  const labels = series.get(name);
  if (names.size !== 1 || labels === undefined) return [`${[...names].join()} is no series`];
  const filtered = [...expr.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label]) => label);
  const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) =>
    list.split(/,\s*/),
  );
  return [...filtered, ...grouped]
    .filter((label = '') => ![...labels, ...OF_PROMETHEUS].includes(label))
    .map((label) => `${name} has no label ${String(label)}`);
}

function expectRunbook(url: string): void {
  expect(url).toContain(RUNBOOK);
  expect([...situations]).toContain(url.slice(RUNBOOK.length));
}

describe('the dashboard and the alert rules', () => {
  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    'name metrics and labels that exist (%s)',
    (_, { expr, labels, annotations }) => {
      expect(faultsIn(expr)).toEqual([]);
      expect(['info', 'warning', 'critical']).toContain(labels.severity);
      expect(annotations.description).not.toBe('');
      expectRunbook(annotations.runbook_url);
      for (const [, label = ''] of annotations.summary.matchAll(/\$labels\.(\w+)/g))
        expect(expr).toContain(label);
    },
  );

  it.each(dashboard.panels.map((panel) => [panel.title, panel] as const))(
    'show series that exist (%s)',
    (_, { targets, links }) => {
      for (const { url } of links) expectRunbook(url);
      for (const { expr, legendFormat } of targets) {
        expect(faultsIn(expr)).toEqual([]);
        for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
          expect(expr).toMatch(new RegExp(`by \\([^)]*\\b${label}\\b`));
      }
    },
  );

  it.each(dashboard.annotations.list.map((each) => [each.name, each] as const))(
    'mark events (%s)',
    (_, { expr }) => {
      expect(faultsIn(expr)).toEqual([]);
    },
  );

  it('let one choose the job, the instance and the template, which each panel goes by', () => {
    const { list } = dashboard.templating;
    expect(list.map(({ name }) => name)).toEqual(['datasource', 'job', 'instance', 'template']);
    for (const { query } of list.slice(1))
      expect(faultsIn(typeof query === 'string' ? query : query.query)).toEqual([]);
    for (const { targets } of dashboard.panels)
      for (const { expr } of targets)
        for (const [, of = ''] of expr.matchAll(/\{([^}]*)\}/g)) {
          expect(of).toContain('job=~"$job",instance=~"$instance"');
          const [name = ''] = /holdfast_\w+/.exec(expr) ?? [];
          if (series.get(name)?.includes('template') === true)
            expect(of).toContain('template=~"$template"');
        }
  });

  it('show every metric', () => {
    const all = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join();
    for (const metric of Object.values(METRICS)) expect(all).toContain(nameIn(metric));
  });

  it('are checked for what does not exist', () => {
    expect(faultsIn('sum(holdfast_nothing)')).toEqual(['holdfast_nothing is no series']);
    expect(faultsIn('sum by (key) (holdfast_lock_active{owner="a"})')).toHaveLength(2);
  });
});
