import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { commentsIn } from '../../../scripts/prose/comments.mjs';
import { complaintsAbout, samplesIn, type Sample } from '../docs/samples.js';
import { compilerHost, compilerOptions } from './compiler.js';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const tests = fileURLToPath(new URL('with-lock.types.ts', import.meta.url));
const types = fileURLToPath(
  new URL('../../../lib/nest/methods/with-lock.types.ts', import.meta.url),
);
/** The type tests again, with nothing suppressed: where the compiler must complain, and what it must say. */
const outspoken = fileURLToPath(new URL('with-lock.outspoken.ts', import.meta.url));

const source = readFileSync(tests, 'utf8');
const expectations = expectationsIn(source);

interface Expectation {
  readonly line: number;
  readonly sentence: string;
}

/** What the compiler must say, and on which lines, according to the comments of a type test. */
function expectationsIn(typeTest: string): Expectation[] {
  return typeTest
    .split('\n')
    .flatMap((line, index) =>
      line.trim().startsWith('// @ts-expect-error')
        ? [{ line: index + 2, sentence: line.split('@ts-expect-error')[1]?.trim() ?? '' }]
        : [],
    );
}

interface Complaint {
  readonly line: number;
  readonly text: string;
}

/** The complaints of the compiler about a file of a program. */
function complaintsAboutFile(program: ts.Program, name: string): Complaint[] {
  const file = program.getSourceFile(name);
  if (file === undefined) throw new Error(`${name} was not compiled`);
  return ts.getPreEmitDiagnostics(program, file).map(({ start, messageText }) => ({
    line: file.getLineAndCharacterOfPosition(start ?? 0).line + 1,
    text: ts.flattenDiagnosticMessageText(messageText, '\n'),
  }));
}

function compile(overrides: ts.CompilerOptions = {}): (file: string) => Complaint[] {
  const options = compilerOptions(overrides);
  const virtual = new Map([[outspoken, source.replaceAll('@ts-expect-error', 'expected:')]]);
  const host = compilerHost(options, virtual);
  const program = ts.createProgram([types, tests, outspoken], options, host);
  return (name) => complaintsAboutFile(program, name);
}

describe('types of @WithLock', () => {
  let complaints: ReturnType<typeof compile>;

  beforeAll(() => {
    complaints = compile();
  });

  it('compile', () => {
    expect(complaints(types)).toEqual([]);
  });

  it('accept and refuse what the type tests say', () => {
    expect(complaints(tests)).toEqual([]);
  });

  it('accept the same without "strict"', () => {
    const lenient = compile({
      strict: false,
      alwaysStrict: true,
      exactOptionalPropertyTypes: false,
    });
    const texts = lenient(tests).map(({ text }) => text);
    expect(texts.filter((text) => text !== "Unused '@ts-expect-error' directive.")).toEqual([]);
  });

  it('complain nowhere else', () => {
    const lines = new Set(complaints(outspoken).map(({ line }) => line));
    expect([...lines]).toEqual(expectations.map(({ line }) => line));
  });

  it.each(expectations)('say on line $line: $sentence', ({ line, sentence }) => {
    const said = complaints(outspoken).filter((complaint) => complaint.line === line);
    expect(sentence).not.toBe('');
    const text = said.map((complaint) => complaint.text).join('\n');
    expect(text).toContain(sentence);
    // Of one problem the compiler prints no other sentence of ours.
    if (!sentence.includes('satisfies')) expect(text).not.toContain('satisfies');
  });
});

/** What the other type tests are about, and their files. */
const OTHERS = [
  ['@RunOnce', 'run-once'],
  ['@CronLock', 'cron-lock'],
  ['defineLock', 'define-lock'],
  ['the kinds of locks', 'kinds'],
  ['@Leader', 'leader'],
] as const;

describe('types of', () => {
  const fileOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
  const sourceOf = (file: string): string => readFileSync(fileOf(`${file}.types.ts`), 'utf8');
  let complaints: (name: string) => Complaint[];

  beforeAll(() => {
    const options = compilerOptions();
    const virtual = new Map(
      OTHERS.map(([, file]) => [
        fileOf(`${file}.outspoken.ts`),
        sourceOf(file).replaceAll('@ts-expect-error', 'expected:'),
      ]),
    );
    // In one program, which is what takes the time.
    const files = OTHERS.map(([, file]) => fileOf(`${file}.types.ts`));
    const host = compilerHost(options, virtual);
    const program = ts.createProgram([...files, ...virtual.keys()], options, host);
    complaints = (name) => complaintsAboutFile(program, fileOf(name));
  }, 120_000);

  it.each(OTHERS)(
    '%s accept and refuse what the type tests say, with these sentences',
    (_what, file) => {
      expect(complaints(`${file}.types.ts`)).toEqual([]);
      const said = complaints(`${file}.outspoken.ts`);
      const expected = expectationsIn(sourceOf(file));
      expect(expected.length).toBeGreaterThan(5);
      expect(said.map(({ line }) => line)).toEqual(expected.map(({ line }) => line));
      said.forEach(({ text }, index) => {
        expect(expected[index]?.sentence).not.toBe('');
        expect(text).toContain(expected[index]?.sentence);
      });
    },
    120_000,
  );
});

describe('the samples of the documentation', () => {
  const read = (page: string): string => readFileSync(project + page, 'utf8');
  const docs = readdirSync(`${project}docs`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`);
  const sources = readdirSync(`${project}lib`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `lib/${name}`);
  /** Those of TSDoc, with the line of the file. */
  const examplesIn = (source: string): readonly Sample[] =>
    commentsIn(read(source), source).flatMap(({ text, line }) =>
      samplesIn(source, text).map((sample) => ({ ...sample, line: line - 1 + sample.line })),
    );

  const FENCE = '```';
  /** A page whose two samples are broken, on lines 6 and 12. */
  const broken = `# Broken

<!-- sample: import { LockService } from 'nestjs-holdfast'; -->

${FENCE}ts
const held: number = await new LockService({ store: 'memory' }).inspect('a');
${FENCE}

${FENCE}ts
import { WithLock } from 'nestjs-holdfast';
class Orders {
  @WithLock('order:<id>')
  pay(id: string): void {}
}
${FENCE}
`;

  it('compile as they are pasted where README.md begins: imports, controller and module', () => {
    const [first] = samplesIn('README.md', read('README.md'));
    expect(first).toMatchObject({ preamble: '' });
    expect([...first!.code.matchAll(/class (\w+)/g)].map(([, name]) => name)).toEqual([
      'OrdersController',
      'AppModule',
    ]);
    expect(complaintsAbout([first!], project, 'export {};')).toEqual([]);
  }, 60_000);

  it('compile, and the compiler sees what is wrong with those that do not', () => {
    const samples = ['README.md', 'site/landing/index.md', ...docs].flatMap((page) =>
      samplesIn(page, read(page)),
    );
    const examples = sources.flatMap(examplesIn);
    expect(samples.length).toBeGreaterThan(10);
    expect(examples.length).toBeGreaterThan(30);

    // In one program, which is what takes the time.
    const complaints = complaintsAbout(
      [...samples, ...examples, ...samplesIn('broken.md', broken)],
      project,
      read('test/claims/docs/prelude.ts.txt'),
    );

    expect(complaints.filter((complaint) => !complaint.startsWith('broken.md:'))).toEqual([]);
    expect(complaints.filter((complaint) => complaint.startsWith('broken.md:'))).toEqual([
      expect.stringMatching(/^broken\.md:6: Type 'LockInspection' is not assignable/),
      expect.stringMatching(/^broken\.md:12: [^]*make it async/),
    ]);
  }, 60_000);
});
