import { redact } from 'nestjs-holdfast/tools';
import type { LocalContext } from './command.js';
import { programIn } from './program-name.js';
import { printable } from './text/printable.js';

/** The next command, for the same servers and keys, as the user can paste it into a shell. It has no passwords. */
export function commandAgain(
  { terminal, options }: Pick<LocalContext, 'terminal' | 'options'>,
  words: readonly string[],
): string {
  const { redis = [], cluster, prefix } = options;
  const place = [
    ...redis.flatMap((url) => ['--redis', redact(url)]),
    ...(cluster === true ? ['--cluster'] : []),
    ...(prefix === undefined ? [] : ['--prefix', prefix]),
  ];
  return [programIn(terminal.env), ...[...words, ...place].map(shellWord)].join(' ');
}

/** Names of keys may come from users of the application: the shell must not read them as commands. */
export function shellWord(text: string): string {
  const word = printable(text);
  return /^[\w:./@=,+-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
