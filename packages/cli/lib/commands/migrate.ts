import { existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Migration, MigrationRequest } from '@nestjs-holdfast/migrate';
import type { RunLocally, LocalContext } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { printable, toJson } from '../text/printable.js';
import { counted } from '../text/who.js';
import { UsageError } from '../usage-error.js';

/** Moves an application from another package to this one. */
export const migrate: RunLocally = async (context) => {
  const { words, options, terminal } = context;
  const paths = words.length === 0 ? ['.'] : words;
  const missing = paths.find((path) => !existsSync(path));
  if (missing !== undefined)
    throw new UsageError(`There is no file and no folder "${printable(missing)}".`);
  const migration = await perform({
    paths,
    writes: options['dry-run'] !== true,
    redlockTo: options['drop-in'] === true ? 'drop-in' : 'service',
  });
  if (options.json === true) terminal.write(`${toJson(migration)}\n`);
  else print(context, migration);
  return migration.failed.length === 0 ? EXIT.ok : EXIT.incomplete;
};

/** Loaded only here: the other commands need none of it. */
async function perform(request: Omit<MigrationRequest, 'compilerFolders'>): Promise<Migration> {
  const { migrate: run, NoCompilerError } = await import('@nestjs-holdfast/migrate');
  const [, program = '.'] = process.argv;
  const compilerFolders = [process.cwd(), dirname(realpathSync(program))];
  try {
    return run({ ...request, compilerFolders });
  } catch (error) {
    if (error instanceof NoCompilerError) throw new UsageError(error.message);
    throw error;
  }
}

function print({ options, terminal, ink }: LocalContext, migration: Migration): void {
  const { files, changed, failed } = migration;
  const isTrial = options['dry-run'] === true;
  for (const { path, rewritten, marked, diff } of changed)
    terminal.write(
      isTrial
        ? diff
        : `${printable(path)}: ${String(rewritten)} rewritten, ${String(marked)} marked\n`,
    );
  for (const { path, problem } of failed)
    terminal.note(`${ink.yellow('left alone:')} ${printable(path)} ${printable(problem)}\n`);
  const sum = (counts: readonly number[]): number => counts.reduce((all, one) => all + one, 0);
  const rewritten = counted(sum(changed.map((file) => file.rewritten)), 'place');
  const marked = counted(sum(changed.map((file) => file.marked)), 'place');
  terminal.note(
    `${counted(files, 'file')} read, ${String(changed.length)} ${isTrial ? 'to be changed' : 'changed'}: ${rewritten} rewritten, ${marked} marked.\n`,
  );
  if (isTrial) terminal.note('Nothing was written.\n');
  else if (changed.length > 0)
    terminal.note(
      'Next: search for TODO(nestjs-holdfast), then format, compile and test. The guide: https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/migrating.md\n',
    );
}
