export interface Must {
  readonly text: string;
  readonly isMetBy: (value: number) => boolean;
}

export interface Judgement {
  readonly median: number;
  /** The ends of the 95 % interval of the median. */
  readonly low: number;
  readonly high: number;
  readonly isPrecise: boolean;
  readonly verdict: 'met' | 'missed' | 'not certain' | undefined;
}

export declare const atLeast: (limit: number) => Must;
export declare const atMost: (limit: number) => Must;
export declare function judge(values: readonly number[], must?: Must): Judgement;
export declare function medianOf(values: readonly number[]): number;
