import type { Judgement, Must } from './judge.mjs';

export interface Row {
  readonly name: string;
  readonly figure: string;
  readonly against?: string;
  readonly must?: Must;
}

export type Figures = Readonly<Record<string, number>>;

export declare function variantsOf(rows: readonly Row[]): Set<string>;
export declare function compare(
  rows: readonly Row[],
  variants: Readonly<Record<string, () => Promise<Figures>>>,
  mostRounds: number,
): Promise<readonly (Row & Judgement & { readonly rounds: number })[]>;
