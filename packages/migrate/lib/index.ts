/** `@nestjs-holdfast/migrate`: rewrites code that uses redlock, redis-semaphore and others. */
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff';
import { loadCompiler } from './compiler.js';
import { FailedFiles, readSource, sourceFilesAt, type FailedFile } from './files.js';
import { migrateText } from './migrate-text.js';
import { Project, type RedlockTarget } from './project.js';

export { NoCompilerError } from './compiler.js';
export type { FailedFile } from './files.js';
export type { RedlockTarget } from './project.js';

/** A file that was changed, or would be. */
export interface ChangedFile {
  readonly path: string;
  readonly rewritten: number;
  readonly marked: number;
  readonly diff: string;
}

/** What a migration did. */
export interface Migration {
  /** How many files were looked at. */
  readonly files: number;
  readonly changed: readonly ChangedFile[];
  readonly failed: readonly FailedFile[];
}

/** What to migrate. */
export interface MigrationRequest {
  readonly paths: readonly string[];
  /** Where typescript is searched, one after the other. */
  readonly compilerFolders: readonly string[];
  readonly writes: boolean;
  readonly redlockTo: RedlockTarget;
}

/**
 * Migrates source files from other packages to nestjs-holdfast, and from its former names.
 *
 * @throws NoCompilerError
 */
export function migrate(request: MigrationRequest): Migration {
  const { paths, compilerFolders, writes, redlockTo } = request;
  const compiler = loadCompiler(compilerFolders);
  const failed = new FailedFiles();
  const sources = sourceFilesAt(paths, failed).flatMap(
    (path) => failed.attempt(path, 'read', () => readSource(path)) ?? [],
  );
  const project = new Project(
    sources.map(({ text }) => text),
    redlockTo,
  );
  const changed: ChangedFile[] = [];
  for (const { path, text, isExact } of sources) {
    const result = migrateText(compiler, resolve(path).replaceAll('\\', '/'), text, project);
    if (result.kind !== 'untouched' && !isExact) {
      failed.all.push({ path, problem: 'is not UTF-8.' });
      continue;
    }
    if (result.kind === 'unparsable')
      failed.all.push({ path, problem: `cannot be parsed. ${result.problem}` });
    if (result.kind !== 'changed') continue;
    const { rewritten, marked, text: migrated } = result;
    const write = (): boolean => {
      if (writes) writeFileSync(path, migrated);
      return true;
    };
    if (failed.attempt(path, 'written', write) !== true) continue;
    changed.push({ path, rewritten, marked, diff: diffOf(path, text, migrated) });
  }
  return { files: sources.length, changed, failed: failed.all };
}

/** A unified diff without context lines, as `diff -U0` prints it. */
const diffOf = (path: string, text: string, migrated: string): string =>
  createTwoFilesPatch(`a/${path}`, `b/${path}`, text, migrated, undefined, undefined, {
    context: 0,
    headerOptions: FILE_HEADERS_ONLY,
    stripTrailingCr: true,
  });
