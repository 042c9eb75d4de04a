export interface Comment {
  /** As Markdown. */
  readonly text: string;
  /** On which it begins. */
  readonly line: number;
}

export function commentsIn(source: string, file?: string): readonly Comment[];
