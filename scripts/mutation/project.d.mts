import type { SourceFile } from './changes.mjs';

export declare class Project {
  readonly root: string;
  constructor(home: string, names: readonly string[], changed: readonly SourceFile[]);
  compiled(): string;
  remove(): void;
}
