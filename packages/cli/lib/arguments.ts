import { parseArgs } from 'node:util';
import { describe } from 'nestjs-holdfast/tools';
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
    if (specOf(name).type === 'boolean') {
      if (value !== undefined) throw new UsageError(`Option ${rawName} takes no value.`);
      options[name] = true;
      continue;
    }
    // The next option is hardly a value that was meant.
    if (value === undefined || value === '' || (!token.inlineValue && value.startsWith('-')))
      throw new UsageError(
        `Option ${rawName} needs a value: ${rawName} ${specOf(name).value ?? ''}.`,
      );
    if (name === 'redis')
      options.redis = [...((options.redis as string[] | undefined) ?? []), value];
    else if (options[name] === undefined) options[name] = value;
    else throw new UsageError(`Option ${rawName} was given twice.`);
  }
  return { words, options };
}

/** @throws UsageError unless it is a whole number from 1 on */
export function countIn(text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || !Number.isSafeInteger(count))
    throw new UsageError(
      `Option --limit must be a whole number from 1 on, received ${describe(text)}.`,
    );
  return count;
}

const UNITS = { ms: 1, s: 1_000, m: 60_000, min: 60_000 };
const SHORTEST_MS = 100;
const LONGEST_MS = 3_600_000;

/** @throws UsageError unless it is a time with a unit, from 100 ms to an hour */
export function intervalIn(text = '2s'): number {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|min)$/.exec(text) ?? [];
  const ms = Number(amount) * ((UNITS[unit as keyof typeof UNITS] as number | undefined) ?? 0);
  if (ms >= SHORTEST_MS && ms <= LONGEST_MS) return ms;
  throw new UsageError(
    `Option --interval must be a time from 100ms to 60min with its unit, such as 500ms or 2s, received ${describe(text)}.`,
  );
}
