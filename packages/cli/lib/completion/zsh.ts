import type { Command } from '../command.js';
import { COMMANDS } from '../commands.js';
import { optionsOf, specOf, type OptionName } from '../options.js';
import { PROGRAM, quoted } from './shell.js';

/** To be sourced, or to be a file of `fpath`. */
export const zshScript = (): string =>
  [
    `#compdef ${PROGRAM}`,
    '_nestjs-holdfast() {',
    '  local context state state_descr line',
    '  typeset -A opt_args',
    "  _arguments -C '1:command:->command' '*::argument:->argument'",
    '  case $state in',
    '    command)',
    '      local -a commands',
    '      commands=(',
    ...COMMANDS.map(({ name, summary }) => `        ${quoted(`${name}:${summary}`)}`),
    '      )',
    '      _describe command commands ;;',
    '    argument)',
    '      case $words[1] in',
    ...COMMANDS.map(commandCase),
    '      esac ;;',
    '  esac',
    '}',
    'if [ "$funcstack[1]" = _nestjs-holdfast ]; then',
    '  _nestjs-holdfast "$@"',
    'else',
    `  compdef _nestjs-holdfast ${PROGRAM}`,
    'fi',
    '',
  ].join('\n');

function commandCase(command: Command): string {
  const specs = [...optionsOf(command).map(optionSpec), wordSpec(command)];
  const given = specs.filter((spec) => spec !== '').map(quoted);
  return `        ${command.name}) _arguments \\\n          ${given.join(' \\\n          ')} ;;`;
}

function optionSpec(name: OptionName): string {
  const { help, type, value = '', values = [], multiple } = specOf(name);
  const repeated = multiple === true ? '*' : '';
  const explained = `${repeated}--${name}[${help.replaceAll(/[[\]:\\]/g, String.raw`\$&`)}]`;
  if (type === 'boolean') return explained;
  return `${explained}:${value}:${values.length === 0 ? '' : `(${values.join(' ')})`}`;
}

/** A word that the shell cannot know has no values: without any, a message would keep it from completing an option. */
function wordSpec({ word }: Command): string {
  if (word === undefined) return '';
  const { name, values = [' '], isList } = word;
  const action = values === 'files' ? '_files' : `(${values.join(' ')})`;
  return `${isList === true ? '*' : '1'}:${name}:${action}`;
}
