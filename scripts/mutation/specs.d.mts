import type { Project } from './project.mjs';

export interface Survey {
  readonly ms: number;
  /** By change. */
  readonly hits: Readonly<Record<string, number>>;
  /** The ids of the changes that the modules come by when they load. */
  readonly loaded: readonly number[];
  /** With the ids of the changes that each comes by. */
  readonly tests: readonly {
    readonly ms: number;
    readonly isGreen: boolean;
    readonly first: readonly number[];
    readonly again: readonly number[];
  }[];
}

export interface Shown {
  readonly id: string;
  readonly hits: number;
  readonly tests: readonly { readonly index: number; readonly ms: number }[];
}

export interface Verdict {
  readonly red: {
    readonly test: string;
    readonly index?: number;
    readonly hangs: boolean;
  } | null;
  readonly seconds: number;
}

export declare class Specs {
  constructor(project: Project, workers: number);
  survey(
    specs: readonly string[],
    wanted: readonly number[],
  ): Promise<readonly (Survey | undefined)[]>;
  judge(spec: string, changes: readonly Shown[]): Promise<ReadonlyMap<string, Verdict>>;
  judgeFromStart(spec: string, change: Shown): Promise<Verdict>;
  stop(): void;
}
