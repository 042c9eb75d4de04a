/** A change of a text: what takes the place of a part of it. */
export interface LuaChange {
  /** From 1 on. */
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly original: string;
  readonly replacement: string;
}

export declare function changesOf(text: string): LuaChange[];
export declare function sampleOf(file: string, text: string, count: number): LuaChange[];
export declare function changedText(text: string, change: LuaChange): string;
