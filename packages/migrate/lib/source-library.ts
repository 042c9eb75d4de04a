import type { ImportChanges } from './import-changes.js';
import type { Injection } from './injection.js';
import type { Project } from './project.js';
import type { Subject } from './subject.js';

/** What the libraries of one file share. */
export interface Migrating {
  readonly imports: ImportChanges;
  readonly injection: Injection;
  readonly project: Project;
}

/** A library that applications move away from, or whose former names they use. */
export interface SourceLibrary {
  /** Names of packages with its API. A file that names none of them is not read any further. */
  readonly packages: readonly string[];
  /** What a file has if there may be something to change. Without it, the package is enough. */
  readonly hint?: RegExp;
  /** Notes on the subject what is to be changed, and what is left to the reader. */
  migrate(subject: Subject, migrating: Migrating): void;
}
