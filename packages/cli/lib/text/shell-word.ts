import { printable } from './printable.js';

/** Names of keys may come from users of the application: the shell must not read them as commands. */
export function shellWord(text: string): string {
  const word = printable(text);
  return /^[\w:./@=,+-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
