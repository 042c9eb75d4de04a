import { COMMANDS } from '../commands.js';
import { OPTION_NAMES, optionsOf, specOf, type OptionName } from '../options.js';
import { PROGRAM, quoted } from './shell.js';

export const fishScript = (): string =>
  [
    `# fish completion for ${PROGRAM}`,
    line('-f'),
    ...COMMANDS.map(({ name, summary }) =>
      line('-n __fish_use_subcommand', `-a ${name}`, `-d ${quoted(summary)}`),
    ),
    ...COMMANDS.flatMap(({ name, word }) => {
      if (word?.values === undefined) return [];
      const values = word.values === 'files' ? '-F' : `-a ${quoted(word.values.join(' '))}`;
      return line(behind([name]), values);
    }),
    ...OPTION_NAMES.map(optionLine),
    '',
  ].join('\n');

const line = (...parts: readonly string[]): string =>
  [`complete -c ${PROGRAM}`, ...parts].join(' ');

const behind = (commands: readonly string[]): string =>
  `-n ${quoted(`__fish_seen_subcommand_from ${commands.join(' ')}`)}`;

function optionLine(option: OptionName): string {
  const { short, help, type, values } = specOf(option);
  const takers = COMMANDS.filter((command) => optionsOf(command).includes(option));
  const parts = [
    ...(takers.length === COMMANDS.length ? [] : [behind(takers.map(({ name }) => name))]),
    ...(short === undefined ? [] : [`-s ${short}`]),
    `-l ${option}`,
    ...(type === 'string' ? ['-x'] : []),
    ...(values === undefined ? [] : [`-a ${quoted(values.join(' '))}`]),
    `-d ${quoted(help)}`,
  ];
  return line(...parts);
}
