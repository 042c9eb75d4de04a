import type { Compiler } from './compiler.js';
import { ImportChanges } from './import-changes.js';
import { Injection } from './injection.js';
import { LIBRARIES } from './libraries.js';
import { parse } from './parse.js';
import { namesPackage, type Project } from './project.js';

/** What became of one file. */
export type Migrated =
  | { readonly kind: 'untouched' }
  | { readonly kind: 'unparsable'; readonly problem: string }
  | {
      readonly kind: 'changed';
      readonly text: string;
      readonly rewritten: number;
      readonly marked: number;
    };

/** Migrates the text of one file. */
export function migrateText(
  compiler: Compiler,
  path: string,
  text: string,
  project: Project,
): Migrated {
  const libraries = LIBRARIES.filter(
    ({ packages, hint }) =>
      packages.some((name) => namesPackage(text, name)) && hint?.test(text) !== false,
  );
  if (libraries.length === 0) return { kind: 'untouched' };
  const parsed = parse(compiler, path, text);
  if (parsed.kind === 'unparsable') return parsed;
  const { subject } = parsed;
  const imports = new ImportChanges(subject);
  const injection = new Injection(subject, imports);
  for (const library of libraries) library.migrate(subject, { imports, injection, project });
  imports.finish();
  const { edited, rewritten, marked } = subject;
  if (!edited.hasChanged()) return { kind: 'untouched' };
  return { kind: 'changed', text: edited.toString(), rewritten, marked };
}
