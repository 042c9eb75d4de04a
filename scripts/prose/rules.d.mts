export interface ProseProblem {
  readonly line: number;
  readonly problem: string;
}

export const MOST_WORDS: number;
export function problemsOf(markdown: string): readonly ProseProblem[];
export function problemsOfComment(markdown: string): readonly ProseProblem[];
export function longCommentLines(source: string): readonly ProseProblem[];
