import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { InstanceInfo, LockSummary } from '../../lib/admin/lock-admin.types.js';
import type { Finding, Level } from '../../packages/cli/lib/doctor/finding.js';
import { findingLines } from '../../packages/cli/lib/text/findings.js';
import { inkFor } from '../../packages/cli/lib/text/ink.js';
import { ORDERS } from '../../packages/cli/lib/order.js';
import { lockLines } from '../../packages/cli/lib/text/lock-table.js';
import { printable, toJson } from '../../packages/cli/lib/text/printable.js';
import { tableLines, type Column } from '../../packages/cli/lib/text/table.js';
import { lasting, moment } from '../../packages/cli/lib/text/times.js';
import { fitted, padded, widthOf } from '../../packages/cli/lib/text/width.js';
import { nameOf } from '../../packages/cli/lib/text/who.js';
import { wrappedLine } from '../../packages/cli/lib/text/wrap.js';
import { suggestion, UsageError } from '../../packages/cli/lib/usage-error.js';

const ink = inkFor({ env: {}, isTty: false });

describe('the width of a text', () => {
  it.each([
    ['order:42', 8],
    ['', 0],
    ['é', 1],
    ['e\u0301', 1],
    ['注文', 4],
    ['ｶﾞ', 2],
    ['Ａ', 2],
    ['한국', 4],
    ['😀', 2],
    ['👩‍👩‍👧', 2],
    ['🇫🇷', 2],
    ['→…', 2],
  ])('of %j is %d cells', (text, cells) => {
    expect(widthOf(text)).toBe(cells);
  });

  it('is never more than it may be, and what is missing is marked', () => {
    expect(fitted('order:42', 8)).toBe('order:42');
    expect(fitted('order:42', 5)).toBe('orde…');
    expect(fitted('注文番号', 5)).toBe('注文…');
    expect(fitted('注文番号', 4)).toBe('注…');
    expect(fitted('order', 0)).toBe('');
    expect(padded('注', 4)).toBe('注  ');
    expect(padded('7', 3, 'right')).toBe('  7');
  });
});

describe('texts of others', () => {
  it('cannot move the cursor or swap what is read', () => {
    expect(printable('a\x1b[2Jb\n\u009bc\u202ed')).toBe('a\\u{1b}[2Jb\\u{a}\\u{9b}c\\u{202e}d');
    expect(printable('order:注文 é')).toBe('order:注文 é');
    expect(toJson({ key: 'a\x1b\u009b\u202e' })).toBe('{"key":"a\\u001b\\u009b\\u202e"}');
    expect(JSON.parse(toJson({ key: 'a\x1b\u009b\u202e' }))).toEqual({ key: 'a\x1b\u009b\u202e' });
  });
});

describe('a line', () => {
  it('that fits is left as it is', () => {
    const line = '    one two three four five six seven';
    expect(wrappedLine(line, line.length)).toEqual([line]);
  });

  it('that does not fit goes on below, two cells further to the right', () => {
    expect(wrappedLine('    one two three four five six seven', 33)).toEqual([
      '    one two three four five six',
      '      seven',
    ]);
  });

  it('has twenty cells for its text in any window', () => {
    expect(wrappedLine('    one two three four five', 10)).toEqual([
      '    one two three four',
      '      five',
    ]);
  });
});

describe('an instance', () => {
  const facts = { host: 'web-3', pid: 4711, application: 'orders' } as InstanceInfo;

  it.each([
    [{}, 'orders on web-3, pid 4711'],
    [{ version: '1.4.2' }, 'orders 1.4.2 on web-3, pid 4711'],
    [{ version: '1.4.2', service: 'audit' }, 'orders 1.4.2 (audit) on web-3, pid 4711'],
    [{ service: 'audit' }, 'orders (audit) on web-3, pid 4711'],
    [{ service: 'a\x1b' }, 'orders (a\\u{1b}) on web-3, pid 4711'],
  ])('with %j has a name', (more, name) => {
    expect(nameOf({ ...facts, ...more })).toBe(name);
  });
});

describe('a table', () => {
  const columns: readonly Column[] = [
    { title: 'KEY', atLeast: 6 },
    { title: 'FOR', align: 'right' },
    { title: 'HOST', atLeast: 4, leaveOut: 2 },
    { title: 'PID', align: 'right', leaveOut: 1 },
  ];
  const rows = [
    ['order:42', '4 min', 'web-three', '4711'],
    ['注文:注文:42', '12 s', 'web-4', '7'],
  ];
  const at = (width: number): readonly string[] => tableLines(columns, rows, width, ink);

  it('is as wide as its texts where there is room', () => {
    expect(at(Infinity)).toEqual([
      'KEY             FOR  HOST        PID',
      'order:42      4 min  web-three  4711',
      '注文:注文:42   12 s  web-4         7',
    ]);
  });

  it('cuts the widest cells first, then leaves columns out', () => {
    expect(at(30)).toEqual([
      'KEY         FOR  HOST      PID',
      'order:42  4 min  web-th…  4711',
      '注文:注…   12 s  web-4       7',
    ]);
    expect(at(22)).toEqual([
      'KEY          FOR   PID',
      'order:42   4 min  4711',
      '注文:注…    12 s     7',
    ]);
    expect(at(15)).toEqual(['KEY         FOR', 'order:42  4 min', '注文:注…   12 s']);
    expect(at(5)).toEqual(['KEY', 'orde…', '注文…']);
  });

  it('leaves out what nobody has', () => {
    expect(tableLines(columns, [['a', '1 s', '', '7']], 80, ink)).toEqual([
      'KEY  FOR  PID',
      'a    1 s    7',
    ]);
  });

  it('has its titles where it is empty', () => {
    expect(tableLines([{ title: 'KEY' }, { title: 'FOR' }], [], Infinity, ink)).toEqual([
      'KEY  FOR',
    ]);
  });

  it('is never wider than the terminal', () => {
    const cell = fc.string({ unit: 'grapheme', maxLength: 40 }).map(printable);
    const table = fc.array(fc.tuple(cell, cell, cell, cell), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(table, fc.integer({ min: 1, max: 120 }), (anyRows, width) => {
        for (const line of tableLines(columns, anyRows, width, ink))
          expect(widthOf(line)).toBeLessThanOrEqual(width);
      }),
      { numRuns: 300 },
    );
  });
});

describe('colours', () => {
  const red = '\x1b[31m!\x1b[39m';
  it.each([
    ['a pipe', {}, false, '!'],
    ['a terminal', {}, true, red],
    ['NO_COLOR', { NO_COLOR: '1' }, true, '!'],
    ['an empty NO_COLOR, which does not count', { NO_COLOR: '' }, true, red],
    ['a terminal that has none', { TERM: 'dumb' }, true, '!'],
    ['FORCE_COLOR', { FORCE_COLOR: '1' }, false, red],
    ['FORCE_COLOR=0', { FORCE_COLOR: '0' }, true, '!'],
    ['an empty FORCE_COLOR, which does not count', { FORCE_COLOR: '' }, false, '!'],
    ['NO_COLOR and FORCE_COLOR', { NO_COLOR: '1', FORCE_COLOR: '1' }, true, '!'],
  ])('with %s', (_, env, isTty, expected) => {
    expect(inkFor({ env, isTty }).red('!')).toBe(expected);
  });

  it('are not put around nothing', () => {
    expect(inkFor({ env: {}, isTty: true }).red('')).toBe('');
  });
});

describe('times', () => {
  it.each([
    [412, '412 ms'],
    [1_000, '1 s'],
    [60_000, '1 min'],
    [3_600_000, '1 h'],
    [86_400_000, '1 d'],
    [-3, '0 ms'],
    [12_400, '12 s'],
    [252_000, '4 min 12 s'],
    [240_000, '4 min'],
    [11_100_000, '3 h 5 min'],
    [187_200_000, '2 d 4 h'],
    [Infinity, 'never ends'],
  ])('%d ms are %s', (ms, text) => {
    expect(lasting(ms)).toBe(text);
  });

  it('are moments in UTC', () => {
    expect(moment(new Date(Date.UTC(2026, 10, 24, 3, 2, 11)))).toBe('2026-11-24 03:02:11 UTC');
    expect(moment(new Date(NaN))).toBe('unknown');
  });
});

describe('the findings of the doctor', () => {
  const finding = (level: Level, server?: string): Finding => ({
    ...{ check: 'role', level, text: 'It is a master.', remedy: 'Do it.' },
    ...(server !== undefined && { server }),
  });
  const verdictOf = (...levels: readonly Level[]): string | undefined =>
    findingLines(
      levels.map((level) => finding(level)),
      80,
      ink,
    ).at(-1);

  it('end with how many there are', () => {
    expect(verdictOf('ok')).toBe('No errors, no warnings');
    expect(verdictOf('ok', 'unknown')).toBe('No errors, no warnings, 1 not known');
    expect(verdictOf('warning', 'warning')).toBe('No errors, 2 warnings');
    expect(verdictOf('warning', 'unknown')).toBe('No errors, 1 warning, 1 not known');
    expect(verdictOf('error', 'ok')).toBe('1 error, 0 warnings');
    expect(verdictOf('error', 'error', 'warning')).toBe('2 errors, 1 warning');
  });

  it('stand below their server, in lines of whole words', () => {
    const text = 'one two three four five six seven eight nine ten eleven twelve';
    const findings = [finding('ok', 'a:1'), { ...finding('error', 'a:1'), text }, finding('ok')];
    const start = ' '.repeat(17);
    expect(findingLines(findings, 62, ink)).toEqual([
      'a:1',
      '  ok       role  It is a master.',
      `${start}→ Do it.`,
      '  error    role  one two three four five six seven eight nine',
      `${start}ten eleven twelve`,
      `${start}→ Do it.`,
      '',
      'Together',
      '  ok       role  It is a master.',
      `${start}→ Do it.`,
      '',
      '1 error, 0 warnings',
    ]);
    // A word fits that ends with the line.
    const exact = findingLines([{ ...finding('error'), text: text.slice(0, 44) }], 61, ink);
    expect(exact[1]).toHaveLength(61);
  });
});

describe('the order of keys', () => {
  const lock = (key: string, facts: Partial<LockSummary> = {}): LockSummary => ({
    ...{
      key,
      state: 'held',
      holders: 1,
      leases: [],
      isUnresponsive: false,
      waiting: 0,
      waitingInstanceIds: [],
    },
    ...facts,
  });
  const since = (ms: number): Date => new Date(ms);

  it.each([
    [
      'waiting',
      [
        ...[lock('z', { waiting: 9 }), lock('y', { waiting: 2, since: since(5) })],
        ...[lock('x', { waiting: 1, since: since(3) }), lock('b', { waiting: 1, since: since(7) })],
        ...[lock('c', { waiting: 1, since: since(7) }), lock('e', { since: since(9) }), lock('a')],
      ],
    ],
    [
      'held',
      [
        ...[lock('z', { since: since(1) }), lock('b', { since: since(2), waiting: 1 })],
        ...[lock('c', { since: since(2), waiting: 5 }), lock('a'), lock('d', { waiting: 9 })],
      ],
    ],
    ['key', [lock('a'), lock('b', { waiting: 9, since: since(1) }), lock('c', { remainingMs: 1 })]],
    [
      'expires',
      [
        ...[lock('z', { remainingMs: 1 }), lock('b', { remainingMs: 2 })],
        ...[lock('c', { remainingMs: 2 }), lock('y', { remainingMs: Infinity })],
        ...[lock('a'), lock('d')],
      ],
    ],
  ] as const)('--sort %s has one place for each', (name, ordered) => {
    for (let turn = 0; turn < ordered.length; turn += 1) {
      const turned = [...ordered.slice(turn), ...ordered.slice(0, turn)];
      for (const some of [turned, turned.toReversed()])
        expect(some.toSorted(ORDERS[name].compare).map(({ key }) => key)).toEqual(
          ordered.map(({ key }) => key),
        );
    }
  });
});

describe('the table of keys', () => {
  const instance = (isUnresponsive: boolean): LockSummary['instance'] => ({
    ...{
      id: 'one',
      application: 'orders-of-the-shop',
      version: '1.4.2',
      host: 'web-3.example.org',
    },
    ...{ pid: 4711, startedAt: new Date(0), seenAt: new Date(0), isUnresponsive },
    isListening: true,
  });
  const held: LockSummary = {
    ...{ key: 'order:42:of-a-customer-with-a-long-name', state: 'held', mode: 'exclusive' },
    ...{ holders: 1, leases: [], isUnresponsive: false, waiting: 12, waitingInstanceIds: [] },
    ...{ since: new Date(0), remainingMs: 48_000 },
  };
  const FREE: Omit<LockSummary, 'key'> = {
    ...{
      state: 'free',
      holders: 0,
      leases: [],
      isUnresponsive: false,
      waiting: 0,
      waitingInstanceIds: [],
    },
  };
  const LOCKS: readonly LockSummary[] = [
    { ...held, instance: instance(true), isUnresponsive: true },
    { ...held, instance: instance(false), once: 'running' },
    { ...held, holders: 2 },
    { ...held, isDetached: true },
    { ...FREE, key: 'free', waiting: 1 },
    ...(['running', 'failed', 'done', 'exhausted'] as const).map((once): LockSummary => ({
      ...FREE,
      key: once,
      once,
    })),
  ];
  const STATES = [
    ...['unresponsive', 'held', 'held', 'detached', 'free'],
    ...['once running', 'once failed', 'once done', 'once exhausted'],
  ];
  const linesAt = (columns: number): readonly string[] =>
    lockLines(LOCKS, { columns, nowMs: 252_000, ink });

  it('begins with the state, which is whole however narrow the terminal is', () => {
    for (const columns of [14, 20, 40, 60, 80, 120, Infinity]) {
      const [head, ...rows] = linesAt(columns);
      expect(head).toMatch(/^STATE\b/);
      expect(rows.map((row) => row.slice(0, 14).trimEnd())).toEqual(STATES);
    }
  });

  it('says how many places of a limit are in use', () => {
    const lines = lockLines([{ ...held, mode: 'limit:3', inUse: 2 }], {
      ...{ columns: Infinity, nowMs: 0, ink },
    });
    expect(lines[1]).toMatch(/ {2}limit:3, 2 in use$/);
  });

  it('leaves columns out from the right', () => {
    const titlesAt = (columns: number): readonly string[] =>
      (linesAt(columns)[0] ?? '').split(/ {2,}/);
    const all = [
      ...['STATE', 'KEY', 'HELD FOR', 'LINE', 'HOLDER', 'WHERE', 'ENDS IN', 'MODE', 'ONCE'],
    ];
    expect(titlesAt(Infinity)).toEqual(all);
    for (let columns = 28; columns < 150; columns += 1) {
      const titles = titlesAt(columns);
      expect(titles).toEqual(all.slice(0, titles.length));
    }
    expect(titlesAt(80)).toEqual(all.slice(0, 7));
  });

  it('names the holder', () => {
    const holders = linesAt(Infinity).map((line) => line.replace(/^.* (?:LINE|12) {2}/, ''));
    expect(holders.slice(1, 5)).toEqual([
      'orders-of-the-shop 1.4.2  web-3.example.org, pid 4711     48 s  exclusive',
      'orders-of-the-shop 1.4.2  web-3.example.org, pid 4711     48 s  exclusive  running',
      'not known and 1 more                                      48 s  exclusive',
      '                                                          48 s  exclusive',
    ]);
  });
});

describe('a mistake on the command line', () => {
  it('is reported with what may have been meant', () => {
    expect(suggestion('jsn', ['json', 'redis'], '--')).toBe(' Did you mean "--json"?');
    expect(suggestion('ab', ['abcd'])).toBe(' Did you mean "abcd"?');
    expect(suggestion('a', ['abcd'])).toBe('');
    expect(suggestion('abcdef', ['abcdefghij'])).toBe('');
    expect(suggestion('abcdefg', ['abcdefghij'])).toBe(' Did you mean "abcdefghij"?');
    expect(suggestion('a', [])).toBe('');
    expect(new UsageError('no').name).toBe('UsageError');
  });
});
