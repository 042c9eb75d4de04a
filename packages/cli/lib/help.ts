import type { Command } from './command.js';
import { GROUPS } from './commands.js';
import { COMMON, OF_REDIS, optionsOf, specOf, type OptionName } from './options.js';

const usageOf = ({ name, word }: Command): string => {
  if (word === undefined) return name;
  const named = word.isList === true ? `${word.name}…` : word.name;
  return `${name} ${word.isRequired ? `<${named}>` : `[${named}]`}`;
};

const aligned = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join('\n');
};

const optionRow = (name: OptionName): readonly [string, string] => {
  const { short, value, help } = specOf(name);
  const names = short === undefined ? `    --${name}` : `-${short}, --${name}`;
  return [value === undefined ? names : `${names} ${value}`, help];
};

const PAGE = 'https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/cli.md';

const examplesOf = ({ examples }: Command, program: string): string =>
  examples.map(([line, purpose]) => `  # ${purpose}\n  ${program} ${line}\n`).join('');

/** The help of the whole program. */
export function helpText(program: string): string {
  const groups = GROUPS.map(
    ([title, commands]) =>
      `${title}\n${aligned(commands.map((command) => [usageOf(command), command.summary]))}\n`,
  );
  return (
    `Who holds which lock, since when, who waits, and how to free it.\n\n` +
    `Usage: ${program} <command> [options]\n\n${groups.join('\n')}\n` +
    `Options of every command\n${aligned([...OF_REDIS, ...COMMON].map(optionRow))}\n\n` +
    `The options of one command: ${program} <command> --help\n` +
    `Exit codes: 0 done, 1 nothing there, 2 wrong usage, 3 Redis not available, 5 not confirmed. 4: doctor found errors.\n6: migrate left files alone, 7 done but not in the audit log, 8 refused: another holder has the key by now\n\n` +
    `More: ${PAGE}\n`
  );
}

/** The help of one command. */
export function helpFor(command: Command, program: string): string {
  return (
    `${command.summary}\n\nUsage: ${program} ${usageOf(command)} [options]\n\n` +
    `Options\n${aligned(optionsOf(command).map(optionRow))}\n\n` +
    `Examples\n${examplesOf(command, program)}\nMore: ${PAGE}#${command.section}\n`
  );
}
