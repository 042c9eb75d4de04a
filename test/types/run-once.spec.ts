import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';

const project = fileURLToPath(new URL('../../', import.meta.url));
const tests = fileURLToPath(new URL('run-once.types.ts', import.meta.url));
/** The type tests again, with nothing suppressed. */
const outspoken = fileURLToPath(new URL('run-once.outspoken.ts', import.meta.url));

const source = readFileSync(tests, 'utf8');
const expectations = source
  .split('\n')
  .flatMap((line, index) =>
    line.trim().startsWith('// @ts-expect-error ')
      ? [{ line: index + 2, sentence: line.split('@ts-expect-error ')[1]?.trim() ?? '' }]
      : [],
  );

describe('types of @RunOnce', () => {
  const config = ts.getParsedCommandLineOfConfigFile(`${project}tsconfig.json`, undefined, {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: (diagnostic) => {
      throw new Error(ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n'));
    },
  });

  it('accept and refuse what the type tests say, with these sentences', () => {
    const options = config?.options ?? {};
    const host = ts.createCompilerHost(options);
    const { fileExists, readFile } = ts.sys;
    const virtual = source.replaceAll('@ts-expect-error', 'expected:');
    host.fileExists = (file) => file === outspoken || fileExists(file);
    host.readFile = (file) => (file === outspoken ? virtual : readFile(file));
    const program = ts.createProgram([tests, outspoken], options, host);
    const complaints = (file: string) =>
      ts.getPreEmitDiagnostics(program, program.getSourceFile(file)).map((diagnostic) => ({
        line: diagnostic.file!.getLineAndCharacterOfPosition(diagnostic.start ?? 0).line + 1,
        text: ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n'),
      }));

    expect(complaints(tests)).toEqual([]);
    const said = complaints(outspoken);
    expect(expectations.length).toBeGreaterThan(5);
    expect(said.map(({ line }) => line)).toEqual(expectations.map(({ line }) => line));
    said.forEach(({ text }, index) => {
      expect(text).toContain(expectations[index]?.sentence);
    });
  }, 60_000);
});
