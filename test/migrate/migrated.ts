import ts from 'typescript';
import { migrateText, type Migrated } from '../../packages/migrate/lib/migrate-text.js';
import { Project } from '../../packages/migrate/lib/project.js';

/** What becomes of a file, which is the only one of its application if no other is given. */
export const migrated = (name: string, text: string, project = new Project([text])): Migrated =>
  migrateText(ts, `/application/${name}`, text, project);

/** The text of the file after it. */
export const textAfter = (name: string, text: string, project?: Project): string => {
  const result = migrated(name, text, project);
  return result.kind === 'changed' ? result.text : text;
};

/** The text of the file after it, without the comments that it put there. */
export const codeAfter = (name: string, text: string, project?: Project): string =>
  textAfter(name, text, project).replaceAll(/^ *\/\/ TODO\(nestjs-holdfast\): .*\r?\n/gm, '');
