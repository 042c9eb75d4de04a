export interface SourceFile {
  readonly name: string;
  readonly content: string;
}

export interface Change {
  /** By which it is switched on. */
  readonly id: string;
  readonly file: string;
  readonly line: number;
  readonly mutatorName: string;
  readonly original: string;
  readonly replacement: string;
  /** Its place in the order of those of its file. */
  readonly rank: string;
  /** Another one when the file is another. */
  readonly key: string;
}

export declare function changesOf(
  sources: readonly SourceFile[],
): Promise<{ readonly files: readonly SourceFile[]; readonly changes: readonly Change[] }>;
export declare function sampleOf(changes: readonly Change[], perFile: number): readonly Change[];
