import {
  LockConfigurationError,
  LockKeyError,
  LockStoreUnavailableError,
  redact,
} from 'nestjs-holdfast/tools';
import { programIn } from './again.js';
import { readArguments, type GivenArguments } from './arguments.js';
import type { Command, Context, LocalContext, RedisCommand } from './command.js';
import { commandNamed } from './commands.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { helpFor, helpText } from './help.js';
import { optionsOf, type OptionName } from './options.js';
import type { Runtime } from './runtime.js';
import { withServers, wrongServerText } from './servers.js';
import { Session } from './session.js';
import { targetOf, type Target } from './target.js';
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

/** The whole program. Never rejects. */
export async function runCli(args: readonly string[], surroundings: CliContext): Promise<ExitCode> {
  try {
    return await dispatch(readArguments(args), surroundings);
  } catch (error) {
    return report(error, surroundings);
  }
}

async function dispatch(given: GivenArguments, surroundings: CliContext): Promise<ExitCode> {
  const { terminal, version } = surroundings;
  const { words, options } = given;
  const [name, word = '', ...rest] = words;
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
  check(command, given, rest);
  const { runtime } = surroundings;
  const ink = inkFor(terminal);
  const local: LocalContext = { words: words.slice(1), options, terminal, ink, runtime };
  if (command.works === 'locally') return command.run(local);
  return perform(command, { ...local, word }, terminal.env);
}

/** @throws UsageError for what the command does not take */
function check(command: Command, given: GivenArguments, rest: readonly string[]) {
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
      `"${name}" takes ${word === undefined ? 'nothing' : `one ${word.name}`}, and "${printable(extra)}" is one too many${rest.length > 0 || word !== undefined ? '. Put a text with spaces in quotes' : ''}.`,
    );
}

const listOf = (names: readonly OptionName[]): string =>
  names.map((name) => `--${name}`).join(', ');

async function perform(
  command: RedisCommand,
  local: LocalContext & Pick<Context, 'word'>,
  env: Terminal['env'],
): Promise<ExitCode> {
  const { options, terminal, ink, runtime } = local;
  const target = targetOf(options, env);
  let opened: Session | undefined;
  const session = (): Session => (opened ??= new Session(target));
  const context: Context = { ...local, target, session, admin: () => session().admin };
  try {
    // `doctor` reports it among other things.
    const problem = command.name === 'doctor' ? undefined : await problemAt(target, runtime);
    if (problem !== undefined) {
      terminal.note(`${ink.red('error:')} ${printable(problem)}\n`);
      return EXIT.unavailable;
    }
    const code = await command.run(context);
    for (const warning of opened?.warnings ?? [])
      terminal.note(`${ink.yellow('warning:')} ${printable(warning)}\n`);
    return code;
  } finally {
    await opened?.close();
  }
}

/** Why the servers have no complete view of the locks. A server that does not answer is reported by the command. */
const problemAt = (target: Target, runtime: Runtime): Promise<string | undefined> =>
  withServers(target, runtime, async ({ servers }) => {
    const problems = await Promise.all(servers.map(wrongServerText));
    return problems.find((problem) => problem !== undefined);
  });

function report(error: unknown, { terminal }: CliContext): ExitCode {
  const ink = inkFor(terminal);
  const say = (text: string): void => {
    terminal.note(`${ink.red('error:')} ${printable(redact(text))}\n`);
  };
  if (error instanceof UsageError || error instanceof LockConfigurationError) {
    say(error.message);
    if (error instanceof UsageError) terminal.note(`See ${programIn(terminal.env)} --help.\n`);
    return EXIT.usage;
  }
  if (error instanceof LockKeyError) {
    say(error.detail);
    return EXIT.usage;
  }
  if (error instanceof LockStoreUnavailableError) {
    say(error.detail);
    return EXIT.unavailable;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  for (const line of text.split('\n')) terminal.note(`${printable(redact(line))}\n`);
  return EXIT.internal;
}
