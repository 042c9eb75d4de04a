import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { changesOf, sampleOf, type Change } from '../../../scripts/mutation/changes.mjs';
import { Project } from '../../../scripts/mutation/project.mjs';
import { Specs, type Survey } from '../../../scripts/mutation/specs.mjs';

const CODE = 'lib/code.ts';
const SPEC = 'test/code.spec.ts';

const FILES = {
  [CODE]: `
export const LOADED = 'when the module loads';
export const half = (number: number): number => number / 2;
export const unseen = (list: readonly number[]): number => [...list].sort((a, b) => a - b).length;
export function count(): number {
  let steps = 0;
  while (steps < 10) steps += 1;
  return steps;
}
export async function told(tell: () => void): Promise<void> {
  await Promise.resolve();
  tell();
}
export function later(value: string): void {
  setImmediate(() => {
    if (value !== '') return;
    throw new Error('Nobody catches this.');
  });
}
export function leave(isLeaving: boolean): void {
  if (isLeaving) process.kill(process.pid, 'SIGKILL');
}
let first: number | undefined;
export const firstOf = (number: number): number => (first ??= number * 3);
const kept: number[] = [];
export function keep(number: number): number {
  if (number > 5) kept.push(number);
  return kept.length;
}
`,
  [SPEC]: `
 import { afterAll, beforeAll, expect, it } from '@jest/globals';
 import { count, firstOf, half, keep, later, leave, told, unseen } from '../lib/code.js';
let isOpen = false;
beforeAll(() => { isOpen = true; });
afterAll(() => { isOpen = false; });
it('halves', () => { expect([isOpen, half(4)]).toEqual([true, 2]); });
it('measures', () => { expect(unseen([2, 1])).toBe(2); });
it('counts', () => { expect(count()).toBe(10); });
it('tells', () => new Promise<void>((done) => void told(done)));
it('throws later', async () => {
  later('a');
  await new Promise((done) => setTimeout(done, 10));
});
it('leaves', () => { leave(false); });
it('knows the first', () => { expect(firstOf(2)).toBe(6); });
it('keeps', () => { expect(keep(5)).toBe(0); });
`,
  'jest.config.js': `
export default {
  roots: ['<rootDir>/test'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '\\\\.ts$': ['@swc/jest', { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' } }] },
  moduleNameMapper: { '^(\\\\.{1,2}/.*)\\\\.js$': '$1' },
};
`,
  'package.json': '{ "type": "module" }',
};

let home: string;
let project: Project;
let specs: Specs;
let changes: readonly Change[];
let survey: Survey | undefined;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'holdfast-mutation-fixture-'));
  for (const [name, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(home, name)), { recursive: true });
    writeFileSync(join(home, name), text);
  }
  const found = await changesOf([{ name: CODE, content: FILES[CODE] ?? '' }]);
  ({ changes } = found);
  project = new Project(home, Object.keys(FILES), found.files);
  specs = new Specs(project, 1);
  [survey] = await specs.survey(
    [SPEC],
    changes.map(({ id }) => Number(id)),
  );
});

afterAll(() => {
  specs.stop();
  project.remove();
  rmSync(home, { recursive: true });
});

function change(original: string, replacement: string): Change {
  const found = changes.find((one) => one.original === original && one.replacement === replacement);
  if (found === undefined) throw new Error(`There is no change of ${original}.`);
  return found;
}

/** As the tests that come by it say, all in one process as long as it lives. */
async function verdictsOf(...shown: readonly Change[]) {
  const verdicts = await specs.judge(
    SPEC,
    shown.map(({ id }) => ({ id, tests: testsOf(id, 'again'), hits: 0 })),
  );
  return shown.map(({ id }) => verdicts.get(id)?.red);
}

const testsOf = (id: string, kind: 'again' | 'first') =>
  (survey?.tests ?? []).flatMap(({ ms, ...ids }, index) =>
    ids[kind].includes(Number(id)) ? [{ index, ms }] : [],
  );

describe('changes of a file', () => {
  it('are those of code that runs when it is called', () => {
    expect(changes.map(({ original }) => original)).not.toContain("'when the module loads'");
    expect(changes.map(({ original }) => original)).toContain('number / 2');
  });

  it('are the same ones in each sample, also when the file has grown', async () => {
    const longer = `const before = (): number => 1;\n${FILES[CODE] ?? ''}`;
    const others = await changesOf([{ name: CODE, content: longer }]);
    const namesOf = (some: readonly Change[]) => some.map(({ rank }) => rank);
    expect(namesOf(sampleOf(changes, 5))).toHaveLength(5);
    expect(namesOf(sampleOf(others.changes, 5))).toEqual(namesOf(sampleOf(changes, 5)));
    expect(sampleOf(changes, 0)).toHaveLength(changes.length);
  });
});

describe('a change', () => {
  it('is noticed by a test, or survives, or hangs, or throws where nobody catches', async () => {
    expect(
      await verdictsOf(
        change('number / 2', 'number * 2'),
        change('a - b', 'a + b'),
        change('steps += 1', 'steps -= 1'),
        change('{\n  await Promise.resolve();\n  tell();\n}', '{}'),
        change("value !== ''", 'false'),
        change('number / 2', 'number * 2'),
      ),
    ).toEqual([
      { index: 0, test: 'halves', hangs: false },
      null,
      { index: 2, test: 'counts', hangs: true },
      { index: 3, test: 'tells', hangs: true },
      { index: 4, test: 'throws later', hangs: false },
      { index: 0, test: 'halves', hangs: false },
    ]);
  });

  it('is noticed when it ends the process, and those after it are tried', async () => {
    expect(
      await verdictsOf(change('isLeaving', 'true'), change('number / 2', 'number * 2')),
    ).toEqual([
      { test: 'the process ended', hangs: false },
      { index: 0, test: 'halves', hangs: false },
    ]);
  });

  it('is noticed when it leaves something behind, and those after it are tried', async () => {
    expect(
      await verdictsOf(change('number > 5', 'true'), change('number / 2', 'number * 2')),
    ).toEqual([
      { index: 7, test: 'keeps', hangs: false },
      { index: 0, test: 'halves', hangs: false },
    ]);
  });

  it('of what runs only the first time is tried while the modules load', async () => {
    const { id } = change('number * 3', 'number / 3');
    expect(testsOf(id, 'again')).toEqual([]);
    const shown = { id, tests: testsOf(id, 'first'), hits: 0 };
    expect((await specs.judgeFromStart(SPEC, shown)).red).toMatchObject({
      test: 'knows the first',
    });
  });
});
