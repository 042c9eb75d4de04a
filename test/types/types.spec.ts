import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from '@jest/globals';
import ts from 'typescript';

const project = fileURLToPath(new URL('../../', import.meta.url));
const tests = fileURLToPath(new URL('with-lock.types.ts', import.meta.url));
const types = fileURLToPath(new URL('../../lib/nest/methods/with-lock.types.ts', import.meta.url));
/** The type tests again, with nothing suppressed: where the compiler must complain, and what it must say. */
const outspoken = fileURLToPath(new URL('with-lock.outspoken.ts', import.meta.url));

const source = readFileSync(tests, 'utf8');
const expectations = source
  .split('\n')
  .flatMap((line, index) =>
    line.trim().startsWith('// @ts-expect-error')
      ? [{ line: index + 2, sentence: line.split('@ts-expect-error')[1]?.trim() ?? '' }]
      : [],
  );

interface Complaint {
  readonly line: number;
  readonly text: string;
}

function compile(overrides: ts.CompilerOptions = {}): (file: string) => Complaint[] {
  const config = ts.getParsedCommandLineOfConfigFile(`${project}tsconfig.json`, overrides, {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: (diagnostic) => {
      throw new Error(ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n'));
    },
  });
  if (config === undefined) throw new Error('tsconfig.json was not read');

  const host = ts.createCompilerHost(config.options);
  const { fileExists, readFile } = ts.sys;
  const virtual = source.replaceAll('@ts-expect-error', 'expected:');
  host.fileExists = (file) => file === outspoken || fileExists(file);
  host.readFile = (file) => (file === outspoken ? virtual : readFile(file));

  const program = ts.createProgram([types, tests, outspoken], config.options, host);
  return (name) => {
    const file = program.getSourceFile(name);
    if (file === undefined) throw new Error(`${name} was not compiled`);
    return ts.getPreEmitDiagnostics(program, file).map(({ start, messageText }) => ({
      line: file.getLineAndCharacterOfPosition(start ?? 0).line + 1,
      text: ts.flattenDiagnosticMessageText(messageText, '\n'),
    }));
  };
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
    const lenient = compile({ strict: false, exactOptionalPropertyTypes: false });
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
