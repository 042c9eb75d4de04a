import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const SOURCE = /\.[cm]?[jt]sx?$/;
const DECLARATION = /\.d\.[cm]?ts$/;
const LEFT_OUT = new Set(['node_modules', 'dist', 'build', 'coverage', '.git']);

/** The source files at and below these paths, each once. */
export function sourceFilesAt(paths: readonly string[]): readonly string[] {
  return [
    ...new Set(paths.flatMap((path) => (statSync(path).isDirectory() ? filesIn(path) : [path]))),
  ];
}

const filesIn = (folder: string): readonly string[] =>
  readdirSync(folder, { withFileTypes: true })
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return LEFT_OUT.has(entry.name) ? [] : filesIn(path);
      return entry.isFile() && SOURCE.test(path) && !DECLARATION.test(path) ? [path] : [];
    });

/** A file as it was read. */
export interface SourceText {
  readonly path: string;
  /** With the mark of the byte order, if there is one. */
  readonly text: string;
  /** Whether the text is all that is in the file: it is UTF-8. */
  readonly isExact: boolean;
}

export function readSource(path: string): SourceText {
  const bytes = readFileSync(path);
  const text = bytes.toString();
  return { path, text, isExact: Buffer.from(text).equals(bytes) };
}
