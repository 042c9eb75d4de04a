import { parseArgs } from 'node:util';
import { OPTIONS, OPTION_NAMES, specOf, type GivenOptions, type OptionName } from './options.js';
import { suggestion, UsageError } from './usage-error.js';

/** A command line, read but not checked against its command. */
export interface GivenArguments {
  readonly words: readonly string[];
  readonly options: GivenOptions;
}

const isName = (name: string): name is OptionName => Object.hasOwn(OPTIONS, name);

/** @throws UsageError */
export function readArguments(args: readonly string[]): GivenArguments {
  // Not strict: Node's own errors know neither what was meant nor what a password is.
  const { tokens } = parseArgs({
    args: [...args],
    options: OPTIONS,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const words: string[] = [];
  const options: Record<string, string | boolean | string[]> = {};
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    if (!isName(name))
      throw new UsageError(`There is no option ${rawName}.${suggestion(name, OPTION_NAMES, '--')}`);
    const { type, value: shown = '', mayBeEmpty = false } = specOf(name);
    if (type === 'boolean') {
      if (value !== undefined) throw new UsageError(`Option ${rawName} takes no value.`);
      options[name] = true;
      continue;
    }
    // The next option is hardly a value that was meant.
    const isLeftOut = value === '' ? !mayBeEmpty : !token.inlineValue && value?.startsWith('-');
    if (value === undefined || isLeftOut === true)
      throw new UsageError(`Option ${rawName} needs a value: ${rawName} ${shown}.`);
    if (name === 'redis')
      options.redis = [...((options.redis as string[] | undefined) ?? []), value];
    else if (options[name] === undefined) options[name] = value;
    else throw new UsageError(`Option ${rawName} was given twice.`);
  }
  return { words, options };
}
