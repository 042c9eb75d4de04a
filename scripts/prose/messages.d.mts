export interface Message {
  readonly text: string;
  readonly line: number;
}

export function messagesIn(source: string): readonly Message[];
