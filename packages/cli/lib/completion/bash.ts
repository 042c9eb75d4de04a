import type { Command } from '../command.js';
import { COMMANDS } from '../commands.js';
import { OPTION_NAMES, optionsOf, specOf } from '../options.js';
import { PROGRAM } from './shell.js';

const NAMES = COMMANDS.map(({ name }) => name);

const dashed = (names: readonly string[]): readonly string[] => names.map((name) => `--${name}`);

/** Works in bash 3.2, too, which is that of macOS. */
export const bashScript = (): string =>
  [
    `# bash completion for ${PROGRAM}`,
    '_nestjs_holdfast() {',
    '  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= word',
    '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
    '    case $word in',
    `      ${NAMES.join('|')}) command=$word; break ;;`,
    '    esac',
    '  done',
    '  COMPREPLY=()',
    '  case $previous in',
    ...valueCases(),
    '  esac',
    '  local options= words=',
    '  case $command in',
    `    '') options='--help --version' words='${NAMES.join(' ')}' ;;`,
    ...COMMANDS.map(commandCase),
    '  esac',
    '  case $current in',
    '    -*) words=$options ;;',
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    `complete -F _nestjs_holdfast ${PROGRAM}`,
    '',
  ].join('\n');

/** What stands behind an option that takes a value. */
function valueCases(): readonly string[] {
  const taking = OPTION_NAMES.filter((name) => specOf(name).type === 'string');
  const known = taking.filter((name) => specOf(name).values !== undefined);
  const others = taking.filter((name) => !known.includes(name));
  return [
    ...known.map(
      (name) =>
        `    --${name}) COMPREPLY=($(compgen -W '${(specOf(name).values ?? []).join(' ')}' -- "$current")); return ;;`,
    ),
    `    ${dashed(others).join('|')}) return ;;`,
  ];
}

function commandCase(command: Command): string {
  const { name, word } = command;
  const options = `options='${dashed(optionsOf(command)).join(' ')}'`;
  if (word?.values === 'files')
    // Bash itself completes names of files, and quotes them: "y;id" is one. The bash of macOS has no compopt.
    return `    ${name}) ${options}; case $current in -*) ;; *) compopt -o default 2>/dev/null; return ;; esac ;;`;
  return `    ${name}) ${options} words='${(word?.values ?? []).join(' ')}' ;;`;
}
