import type { RunLocally } from '../command.js';
import { bashScript } from '../completion/bash.js';
import { fishScript } from '../completion/fish.js';
import { zshScript } from '../completion/zsh.js';
import { EXIT } from '../exit-codes.js';
import { printable } from '../text/printable.js';
import { suggestion, UsageError } from '../usage-error.js';

const SCRIPTS = new Map([
  ['bash', bashScript],
  ['zsh', zshScript],
  ['fish', fishScript],
]);

/** Prints the script of a shell. */
export const completion: RunLocally = ({ words: [shell = ''], terminal }) => {
  const script = SCRIPTS.get(shell);
  if (script === undefined) {
    const shells = [...SCRIPTS.keys()];
    throw new UsageError(
      `There is no completion for "${printable(shell)}".${suggestion(shell, shells)} Shells are ${shells.join(', ')}.`,
    );
  }
  terminal.write(script());
  return Promise.resolve(EXIT.ok);
};
