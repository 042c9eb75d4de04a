import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { compilerHost, compilerOptions } from '../claims/types/compiler.js';
import { fixtures } from './fixtures.js';
import { PACKAGES } from './packages.js';

describe('migrated files', () => {
  it('compile, with what is left of the other packages', () => {
    const folder = process.cwd();
    const typed = fixtures.filter(({ name }) => name.endsWith('.ts'));
    const sources = new Map(
      typed.map(({ name, expected }) => [`${folder}/test/migrate/fixtures/${name}`, expected]),
    );
    sources.set(`${folder}/test/migrate/fixtures/packages.d.ts`, PACKAGES);
    const options = compilerOptions({
      noUnusedLocals: false,
      noUnusedParameters: false,
      verbatimModuleSyntax: false,
    });
    const program = ts.createProgram([...sources.keys()], options, compilerHost(options, sources));
    const complaints = [...sources.keys()].flatMap((name) =>
      program.getSemanticDiagnostics(program.getSourceFile(name)).map(({ messageText, start }) => {
        const { line } = program.getSourceFile(name)!.getLineAndCharacterOfPosition(start ?? 0);
        return `${name}:${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
      }),
    );
    expect(complaints).toEqual([]);
  });
});
