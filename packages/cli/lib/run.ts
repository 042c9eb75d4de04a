import { readArguments, type GivenArguments } from './arguments.js';
import type { Command, LocalCommandName, LocalContext, RunLocally } from './command.js';
import { commandNamed } from './commands.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { helpFor, helpText } from './help.js';
import { optionsOf, type OptionName } from './options.js';
import { programIn } from './program-name.js';
import type { Runtime } from './runtime.js';
import type { Terminal } from './terminal.js';
import { inkFor } from './text/ink.js';
import { printable } from './text/printable.js';
import { UsageError } from './usage-error.js';

/** What the program stands on. */
export interface CliContext {
  readonly terminal: Terminal;
  readonly runtime: Runtime;
  readonly version: () => string;
}

/** Loaded when they are used, as everything that needs the library: a help is printed at once. */
const LOCAL: Readonly<Record<LocalCommandName, () => Promise<RunLocally>>> = {
  migrate: async () => {
    const { migrate } = await import('./commands/migrate.js');
    return migrate;
  },
  completion: async () => {
    const { completion } = await import('./commands/completion.js');
    return completion;
  },
};

/** The whole program. Never rejects. */
export async function runCli(args: readonly string[], surroundings: CliContext): Promise<ExitCode> {
  try {
    return await dispatch(readArguments(args), surroundings);
  } catch (error) {
    const { report } = await import('./report.js');
    return report(error, surroundings.terminal);
  }
}

async function dispatch(given: GivenArguments, surroundings: CliContext): Promise<ExitCode> {
  const { terminal, version } = surroundings;
  const { words, options } = given;
  const [name, word = ''] = words;
  const program = programIn(terminal.env);
  if (options.version === true) {
    terminal.write(`${version()}\n`);
    return EXIT.ok;
  }
  if (name === undefined && options.help !== true) {
    terminal.note(helpText(program));
    return EXIT.usage;
  }
  if (name === undefined || name === 'help') {
    terminal.write(word === '' ? helpText(program) : helpFor(commandNamed(word), program));
    return EXIT.ok;
  }
  const command = commandNamed(name);
  if (options.help === true) {
    terminal.write(helpFor(command, program));
    return EXIT.ok;
  }
  check(command, given);
  const { runtime } = surroundings;
  const ink = inkFor(terminal);
  const local: LocalContext = { words: words.slice(1), options, terminal, ink, runtime };
  if (command.works === 'locally') return (await LOCAL[command.name]())(local);
  const { perform } = await import('./perform.js');
  return perform(command.name, { ...local, word });
}

/** @throws UsageError for what the command does not take */
export function check(command: Command, given: GivenArguments): void {
  const { name, word } = command;
  const mine = optionsOf(command);
  const foreign = Object.keys(given.options).find((option) => !(mine as string[]).includes(option));
  if (foreign !== undefined)
    throw new UsageError(
      `"${name}" takes no option --${foreign}. Its options are ${listOf(mine)}.`,
    );
  const [, first, second] = given.words;
  if (word?.isRequired === true && first === undefined)
    throw new UsageError(`"${name}" needs a ${word.name}: ${name} <${word.name}>.`);
  if (word?.isList === true) return;
  const extra = word === undefined ? first : second;
  if (extra !== undefined)
    throw new UsageError(
      `"${name}" takes ${word === undefined ? 'nothing' : `one ${word.name}`}, and "${printable(extra)}" is one too many${second !== undefined ? '. Put a text with spaces in quotes' : ''}.`,
    );
}

const listOf = (names: readonly OptionName[]): string =>
  names.map((name) => `--${name}`).join(', ');
