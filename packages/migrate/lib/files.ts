import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const SOURCE = /\.[cm]?[jt]sx?$/;
const DECLARATION = /\.d\.[cm]?ts$/;
const LEFT_OUT = new Set(['node_modules', 'dist', 'build', 'coverage', '.git']);

/** A file that was left alone, and why. */
export interface FailedFile {
  readonly path: string;
  /** Behind the path, it is a sentence. */
  readonly problem: string;
}

/** Files and folders that cannot be used. The others are migrated. */
export class FailedFiles {
  readonly all: FailedFile[] = [];

  /** Returns `undefined` for a failure, which it keeps. */
  attempt<T>(path: string, what: 'read' | 'written', act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      this.all.push({ path, problem: `cannot be ${what}: ${code ?? message}.` });
      return undefined;
    }
  }
}

/** The source files at and below these paths, each once. */
export function sourceFilesAt(paths: readonly string[], failed: FailedFiles): readonly string[] {
  const isFolder = (path: string): boolean => statSync(path).isDirectory();
  return [...new Set(paths.flatMap((path) => (isFolder(path) ? filesIn(path, failed) : [path])))];
}

function filesIn(folder: string, failed: FailedFiles): readonly string[] {
  const read = () => readdirSync(folder, { withFileTypes: true });
  return (failed.attempt(folder, 'read', read) ?? [])
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return LEFT_OUT.has(entry.name) ? [] : filesIn(path, failed);
      return entry.isFile() && SOURCE.test(path) && !DECLARATION.test(path) ? [path] : [];
    });
}

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
