import type { ProfileName } from '../scenario.js';

/** A bug that is put into the library on purpose: the simulation has to find it. */
export interface PlantedBug {
  readonly name: string;
  /** From the root of the project. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** The worlds in which it is looked for. */
  readonly profile: ProfileName;
  readonly explanation: string;
  /** Of the documentation. Default: `internals/promises.md`. */
  readonly page?: string;
  /** What that page says, word for word, and would no longer be true. */
  readonly breaks: string;
}

/** The source of a file with the bug in it. */
export function plant(source: string, { name, file, find, replace }: PlantedBug): string {
  const [before, after, ...others] = source.split(find);
  if (before === undefined || after === undefined || others.length > 0)
    throw new Error(`${name}: what is to be replaced has to occur exactly once in ${file}.`);
  return before + replace + after;
}
