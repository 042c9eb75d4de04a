import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { inspect, isDeepStrictEqual } from 'node:util';
import { beforeAll, describe, expect, it } from '@jest/globals';
import ms from 'ms';
import * as prettier from 'prettier';
import { LEAD_KIND } from '../../../lib/leader/lead-options.js';
import { LEADER_KIND } from '../../../lib/nest/leaders/leader.decorator.js';
import {
  CRON_LOCK,
  FEATURE,
  RUN_ONCE_METHOD,
  WITH_LOCK,
} from '../../../lib/nest/methods/method-options.js';
import { RUN_ONCE_CALL } from '../../../lib/once/once-options.js';
import { LOCKING_WORKER } from '../../../lib/worker/worker-options.js';
import { CALLS } from '../../../lib/options/acquire-options.js';
import { LOCK_MODULE, REGISTRATION } from '../../../lib/options/lock-module-options.js';
import type { Schema } from '../../../lib/options/schema.js';
import { CompiledOptions, type OptionDoc } from './option-docs.js';

/*
 * The tables of options are made from the schemas and the comments on them.
 * `UPDATE_DOCS=1 npm test -- test/claims/docs/options` writes them anew.
 */

/** Options that go together, and the type that documents them. */
interface Options {
  readonly schema: Schema;
  readonly file: string;
  readonly type: string;
}

const METHODS = 'lib/nest/methods/method-options.ts';
const ONCE = 'lib/once/once-options.ts';
const WORKER = 'lib/worker/worker-options.ts';
const ACQUIRE = 'lib/options/acquire-options.ts';
const LEAD = 'lib/leader/lead-options.ts';
const LEADER = 'lib/nest/leaders/leader.decorator.ts';
const MODULE = 'lib/options/lock-module-options.ts';

/** The tables, by the name that their place on a page has: `<!-- options: module -->`. In each the calls that it is about. */
const TABLES: Readonly<Record<string, Readonly<Record<string, Options>>>> = {
  module: {
    forRoot: { schema: LOCK_MODULE.options, file: MODULE, type: 'LockModuleOptions' },
    beside: { schema: REGISTRATION, file: MODULE, type: 'RegistrationOptions' },
  },
  calls: {
    '@WithLock': { schema: WITH_LOCK, file: METHODS, type: 'WithLockOptions' },
    acquire: { schema: CALLS.acquire.options, file: ACQUIRE, type: 'AcquireOptions' },
    tryAcquire: { schema: CALLS.tryAcquire.options, file: ACQUIRE, type: 'TryAcquireOptions' },
    run: { schema: CALLS.run.options, file: ACQUIRE, type: 'RunOptions' },
    tryRun: { schema: CALLS.tryRun.options, file: ACQUIRE, type: 'TryRunOptions' },
  },
  feature: {
    forFeature: { schema: FEATURE, file: METHODS, type: 'LockFeatureOptions' },
  },
  cron: {
    '@CronLock': { schema: CRON_LOCK, file: METHODS, type: 'CronLockOptions' },
  },
  once: {
    runOnce: { schema: RUN_ONCE_CALL.options, file: ONCE, type: 'RunOnceOptions' },
    '@RunOnce': { schema: RUN_ONCE_METHOD, file: METHODS, type: 'RunOnceMethodOptions' },
  },
  leader: {
    lead: { schema: LEAD_KIND.options, file: LEAD, type: 'LeadOptions' },
    '@Leader': { schema: LEADER_KIND.options, file: LEADER, type: 'LeaderMethodOptions' },
  },
  worker: {
    LockingWorker: { schema: LOCKING_WORKER.options, file: WORKER, type: 'LockingWorkerOptions' },
  },
};

/** The options of calls that most users need, in the order of the first table. */
const FIRST = ['wait', 'onLocked', 'ttl', 'maxHold', 'mode', 'limit', 'signal'];

/** The other options of calls, each with what needs it. */
const RARE: Readonly<Record<string, string>> = {
  returns: 'a method that returns an Observable or an async iterable',
  autoExtend: 'a lock that ends after its `ttl`, even if the work still runs',
  minHold: 'short jobs on machines whose clocks differ',
  release: 'work that may run once in a time, such as a reminder',
  places: 'a call that uses more of a limited resource than others do',
  reentrant: 'work that must not be called inside itself',
  replaceWait: "`onLocked: 'replace'`, if the work needs longer than 1 s to stop",
  instance: 'an application with several lock services',
};

/** The tables that show a part of another one. */
const PARTS: Readonly<Record<string, { readonly of: string; readonly names: readonly string[] }>> =
  {
    calls: { of: 'calls', names: FIRST },
    rare: { of: 'calls', names: Object.keys(RARE) },
  };

let compiled: CompiledOptions;

beforeAll(() => {
  compiled = new CompiledOptions([
    METHODS,
    ONCE,
    WORKER,
    ACQUIRE,
    MODULE,
    LEAD,
    LEADER,
    'lib/options/schema.ts',
  ]);
});

/** A default as the documentation writes it. */
function shown(value: unknown): string {
  if (typeof value === 'number') return String(value);
  const duration = typeof value === 'string' ? ms(value as ms.StringValue) : undefined;
  if (duration === undefined) return `\`${inspect(value)}\``;
  if (duration < 1_000) return `${String(duration)} ms`;
  if (duration < 60_000) return `${String(duration / 1_000)} s`;
  return duration < 3_600_000
    ? `${String(duration / 60_000)} min`
    : `${String(duration / 3_600_000)} h`;
}

interface Row {
  readonly calls: readonly string[];
  readonly doc: OptionDoc;
  /** By call, where it is not that of the first one. */
  readonly defaults: ReadonlyMap<string, string>;
}

function rowsOf(calls: Readonly<Record<string, Options>>): ReadonlyMap<string, Row> {
  const rows = new Map<string, Row>();
  for (const [call, { schema, file, type }] of Object.entries(calls)) {
    const docs = compiled.docsOf(file, type);
    expect([...docs.keys()].toSorted()).toEqual(Object.keys(schema).toSorted());
    for (const [name, { presence, fallback }] of Object.entries(schema)) {
      const doc = docs.get(name) as OptionDoc;
      const text = presence === 'required' ? 'required' : (doc.defaultText ?? '–');
      const isNothing = fallback === undefined || inspect(fallback) === '{}';
      if (!isNothing) expect(`${name}: ${text}`).toBe(`${name}: ${shown(fallback)}`);
      const {
        calls: before,
        doc: first,
        defaults,
      } = rows.get(name) ?? { calls: [], doc, defaults: new Map<string, string>() };
      const known = [...defaults.values()];
      rows.set(name, {
        calls: [...before, call],
        doc: first,
        defaults: known.includes(text) ? defaults : new Map([...defaults, [call, text]]),
      });
    }
  }
  return rows;
}

/** The options of all calls of a table that the tables of calls document in the same words. They share one row. */
function repeatedIn(rows: ReadonlyMap<string, Row>, all: number): readonly string[] {
  const known = rowsOf(TABLES.calls ?? {});
  const names = [...rows]
    .filter(
      ([name, { doc, calls }]) =>
        calls.length === all && isDeepStrictEqual(doc, known.get(name)?.doc),
    )
    .map(([name]) => name);
  return names.length > 1 ? names : [];
}

function tableOf(table: string): string {
  const { of, names } = PARTS[table] ?? { of: table, names: undefined };
  const calls = TABLES[of] ?? {};
  const rows = rowsOf(calls);
  const isRare = table === 'rare';
  const hasCalls = ['calls', 'once', 'leader'].includes(of);
  const repeated = of === 'calls' ? [] : repeatedIn(rows, Object.keys(calls).length);
  const lines = (names ?? [...rows.keys()].filter((name) => !repeated.includes(name))).map(
    (name) => {
      const row = rows.get(name) as Row;
      const [first = '–', ...others] = [...row.defaults].map(([call, text], index) =>
        index === 0 ? text : `\`${call}\`: ${text}`,
      );
      const isAll = row.calls.length === Object.keys(calls).length;
      return [
        `\`${name}\``,
        ...(isRare ? [RARE[name] ?? ''] : []),
        ...(hasCalls ? [isAll ? 'all' : row.calls.map((call) => `\`${call}\``).join(', ')] : []),
        [first, ...others].join('; '),
        row.doc.text,
      ].map((cell) => cell.replaceAll('|', String.raw`\|`));
    },
  );
  const head = [
    'option',
    ...(isRare ? ['needed for'] : []),
    ...(hasCalls ? ['in'] : []),
    ...['default', ''],
  ];
  const all = [head, head.map(() => '-'), ...lines];
  if (repeated.length > 0) {
    const options = repeated.map((name) => `\`${name}\``).join(', ');
    all.push([
      options,
      ...(hasCalls ? ['all'] : []),
      '',
      'the same as [of one call](options.md#of-one-call)',
    ]);
  }
  return `${all.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}

describe('the tables of options', () => {
  it('have each option of a call once: at most eight in the first table, the others with what needs them', () => {
    const shown = [...FIRST, ...Object.keys(RARE)];
    expect(shown.toSorted()).toEqual([...rowsOf(TABLES.calls ?? {}).keys()].toSorted());
    expect(FIRST.length).toBeLessThanOrEqual(8);
  });

  it.each([
    ['docs/options.md', ['calls', 'rare', 'module', 'feature']],
    ['docs/once.md', ['once', 'worker']],
    ['docs/cron.md', ['cron', 'leader']],
  ])(
    'of %s say what the options are: %j',
    async (page, tables) => {
      const path = fileURLToPath(new URL(`../../../${page}`, import.meta.url));
      const present = await readFile(path, 'utf8');
      const made: string[] = [];
      const text = present.replaceAll(
        /(<!-- options: (\w+) -->\n\n)(?:\|.*\n)+/g,
        (_whole, marker: string, table: string) => {
          made.push(table);
          return marker + tableOf(table);
        },
      );
      expect(made).toEqual(tables);
      const settings = { ...(await prettier.resolveConfig(path)), parser: 'markdown' };
      const formatted = await prettier.format(text, settings);
      if (process.env.UPDATE_DOCS === '1') await writeFile(path, formatted);
      expect(await readFile(path, 'utf8')).toBe(formatted);
    },
    60_000,
  );
});

describe('an editor', () => {
  it('shows the documentation of an option where it is given', () => {
    const code = `
      import type { RunOnceMethodOptions, WithLockOptions } from './nest/methods/method-options.js';
      import type { RunOnceOptions } from './once/once-options.js';
      import type { LockingWorkerOptions } from './worker/worker-options.js';
      import type { AcquireOptions, RunOptions, TryAcquireOptions } from './options/acquire-options.js';
      import type { LockModuleOptions, RegistrationOptions } from './options/lock-module-options.js';
      declare function acquire(key: string, options: AcquireOptions): void;
      declare function tryAcquire(key: string, options: TryAcquireOptions): void;
      declare function run(key: string, options: RunOptions): void;
      declare function runOnce(key: string, options: RunOnceOptions): void;
      declare function forRoot(options: LockModuleOptions & RegistrationOptions): void;
      declare function worker(options: LockingWorkerOptions): void;
      declare function withLock(key: string, options: WithLockOptions): void;
      declare function runOnceMethod(key: string, options: RunOnceMethodOptions): void;
      acquire('k', { ttl: /*1*/ 1_000 });
      tryAcquire('k', { maxHold: /*2*/ '1s' });
      run('k', { wait: /*3*/ 0, reentrant: /*4*/ false });
      runOnce('k', { keepDone: /*5*/ '1h', ttl: /*6*/ '5s' });
      forRoot({ redis: /*7*/ 'redis://a', isGlobal: /*8*/ true, replicas: { ack: /*9*/ 1, timeout: /*10*/ 5 } });
      worker({ lockKey: /*11*/ 'k' });
      withLock('k', { ttl: /*12*/ '5s', wait: /*13*/ '1s', reentrant: /*14*/ true });
      runOnceMethod('k', { instance: /*15*/ 'jobs', maxHold: /*16*/ '1m' });
    `;
    const places = Array.from(code.matchAll(/\w+: \/\*\d+\*\//g), ([place]) => place);
    const shownTexts = compiled.hover(code, places).map(({ text }) => text);
    expect(shownTexts).toEqual([
      expect.stringMatching(/^How long the lease lasts unless it is renewed\./),
      expect.stringMatching(/^The longest time that the lock may be held/),
      expect.stringMatching(/^How long to wait for the lock; 0 does not wait\./),
      expect.stringMatching(/^Whether a nested call for the same keys/),
      expect.stringMatching(/^How long Redis keeps the record that the work is done/),
      expect.stringMatching(/^How long the lease lasts unless it is renewed\./),
      expect.stringMatching(/^Where Redis is: a URL/),
      expect.stringMatching(/^Whether all modules of the application/),
      expect.stringMatching(/^How many replicas must have a lease/),
      expect.stringMatching(/^How long to wait for the replicas/),
      expect.stringMatching(/^The key: the name of the work/),
      expect.stringMatching(/^How long the lease lasts unless it is renewed\./),
      expect.stringMatching(/^How long a call waits in line for the lock/),
      expect.stringMatching(/^Whether a nested call for the same keys/),
      expect.stringMatching(/^The `name` under which the `LockService` was registered/),
      expect.stringMatching(/^The longest time that the lock may be held/),
    ]);
  }, 60_000);
});
