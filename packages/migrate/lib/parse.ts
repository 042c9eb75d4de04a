import type ts from 'typescript';
import type { Compiler } from './compiler.js';
import { Subject } from './subject.js';

/** A file that was read, or what is wrong with it. */
export type Parsed =
  | { readonly kind: 'parsed'; readonly subject: Subject }
  | { readonly kind: 'unparsable'; readonly problem: string };

/** Reads one file by itself: nothing that it imports is looked at. */
export function parse(compiler: Compiler, path: string, text: string): Parsed {
  const options: ts.CompilerOptions = {
    allowJs: true,
    experimentalDecorators: true,
    jsx: compiler.JsxEmit.Preserve,
    module: compiler.ModuleKind.ESNext,
    noLib: true,
    noResolve: true,
    target: compiler.ScriptTarget.Latest,
    types: [],
  };
  const source = compiler.createSourceFile(path, text, compiler.ScriptTarget.Latest, true);
  const host: ts.CompilerHost = {
    fileExists: (name) => name === path,
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => '/',
    getDefaultLibFileName: () => '',
    getNewLine: () => '\n',
    getSourceFile: (name) => (name === path ? source : undefined),
    readFile: () => undefined,
    useCaseSensitiveFileNames: () => true,
    writeFile: () => undefined,
  };
  const program = compiler.createProgram({ rootNames: [path], options, host });
  const [problem] = program.getSyntacticDiagnostics(source);
  if (problem === undefined)
    return { kind: 'parsed', subject: new Subject(compiler, program, source) };
  const { line } = source.getLineAndCharacterOfPosition(problem.start);
  const sentence = compiler.flattenDiagnosticMessageText(problem.messageText, ' ');
  return { kind: 'unparsable', problem: `line ${String(line + 1)}: ${sentence}` };
}
