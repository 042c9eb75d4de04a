import ts from 'typescript';
import { compilerHost, compilerOptions } from '../types/compiler.js';

/** A `ts` code block of a page. */
export interface Sample {
  /** The page it is on, relative to the project. */
  readonly page: string;
  /** The line of the page on which its code begins, counted from 1. */
  readonly line: number;
  /** What the page does not show: the code in a `<!-- sample: … -->` comment right before the block. */
  readonly preamble: string;
  readonly code: string;
  /** The name in a `<!-- file: … -->` comment before the block: other blocks import it from there. */
  readonly file: string | undefined;
}

/** Samples show how something is declared, and need not use it. */
const SETTINGS = { noUnusedLocals: false, noUnusedParameters: false, verbatimModuleSyntax: false };

const BLOCK =
  /(?:<!-- file: (?<file>\S+) -->\s*)?(?:<!-- sample:(?<preamble>[^]*?)-->\s*)?^```ts\n(?<code>[^]*?)^```$/gm;

export function samplesIn(page: string, text: string): readonly Sample[] {
  return [...text.matchAll(BLOCK)].map(({ 0: whole, index, groups = {} }) => {
    const { preamble = '', code = '', file } = groups;
    const before = text.slice(0, index + whole.indexOf('```ts\n'));
    return { page, line: before.split('\n').length + 1, preamble: preamble.trim(), code, file };
  });
}

/**
 * Compiles the samples, each as a module of its own, in one program with the settings of the project. Answers what the compiler
 * complains about: `page:line: sentence`.
 *
 * @param prelude the source of a module that declares what samples may use without saying where it comes from
 */
export function complaintsAbout(
  samples: readonly Sample[],
  project: string,
  prelude: string,
): readonly string[] {
  const folder = `${project}test/claims/docs/`;
  const files = new Map(samples.map((sample) => [folder + nameOf(sample), sample]));
  const sources = new Map([...files].map(([file, sample]) => [file, sourceOf(sample)]));
  // Its globals are for the samples: as a file of its own, every file of the project would see them.
  sources.set(`${folder}prelude.ts`, prelude);
  const options = compilerOptions(SETTINGS);
  const program = ts.createProgram([...sources.keys()], options, compilerHost(options, sources));
  // File by file: the library's own files are not looked through, which takes the time.
  return [...sources.keys()].flatMap((name) => {
    const file = program.getSourceFile(name);
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map(
      ({ start, messageText }) => {
        const sentence = ts.flattenDiagnosticMessageText(messageText, '\n');
        const line = file?.getLineAndCharacterOfPosition(start ?? 0).line ?? 0;
        const sample = files.get(name);
        if (sample === undefined) return `prelude:${String(line + 1)}: ${sentence}`;
        const shown = Math.max(0, line - preambleLines(sample));
        return `${sample.page}:${String(sample.line + shown)}: ${sentence}`;
      },
    );
  });
}

const nameOf = ({ file, page, line }: Sample): string =>
  file ?? `${page.replaceAll('/', '-')}-${String(line)}.ts`;

const preambleLines = ({ preamble }: Sample): number =>
  preamble === '' ? 0 : preamble.split('\n').length;

const sourceOf = ({ preamble, code }: Sample): string =>
  `${preamble === '' ? '' : `${preamble}\n`}${code}export {};\n`;
