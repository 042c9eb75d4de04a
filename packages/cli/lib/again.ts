import { redact } from 'nestjs-holdfast/tools';
import type { LocalContext } from './command.js';
import { programIn } from './program-name.js';
import { shellWord } from './text/shell-word.js';

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
