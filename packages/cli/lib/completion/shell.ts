/** How the program is called where it is completed: npx has a completion of its own. */
export const PROGRAM = 'nestjs-holdfast';

/** A text that every shell takes as it is. */
export const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
