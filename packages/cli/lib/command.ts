import type { LockAdmin } from 'nestjs-holdfast/admin';
import type { ExitCode } from './exit-codes.js';
import type { GivenOptions, OptionName } from './options.js';
import type { Runtime } from './runtime.js';
import type { Session } from './session.js';
import type { Target } from './target.js';
import type { Terminal } from './terminal.js';
import type { Ink } from './text/ink.js';

/** What every command has to work with. */
export interface LocalContext {
  /** All that stands behind the command. */
  readonly words: readonly string[];
  readonly options: GivenOptions;
  readonly terminal: Terminal;
  readonly ink: Ink;
  readonly runtime: Runtime;
}

/** What a command that asks a Redis has to work with. */
export interface Context extends LocalContext {
  /** The word behind the command; empty where none was given. */
  readonly word: string;
  readonly target: Target;
  /** Opened when it is first asked for, and closed at the end. */
  readonly session: () => Session;
  readonly admin: () => LockAdmin;
}

/** Runs a command that asks a Redis. */
export type RunWithRedis = (context: Context) => Promise<ExitCode>;

/** Runs a command that needs none. */
export type RunLocally = (context: LocalContext) => Promise<ExitCode>;

export type RedisCommandName =
  | 'list'
  | 'show'
  | 'watch'
  | 'top'
  | 'instances'
  | 'audit'
  | 'release'
  | 'release-instance'
  | 'forget'
  | 'doctor';

export type LocalCommandName = 'migrate' | 'completion';

interface Described {
  readonly summary: string;
  /** The word behind it. */
  readonly word?: {
    readonly name: string;
    readonly isRequired: boolean;
    /** Whether there may be several. */
    readonly isList?: true;
    /** What a shell completes it with. */
    readonly values?: 'files' | readonly string[];
  };
  /** Beside the common ones. */
  readonly options: readonly OptionName[];
  /** The heading in docs/cli.md, as links name it. */
  readonly section: string;
  readonly examples: readonly Example[];
}

/** What stands behind the name of the program, and what it is for. */
export type Example = readonly [line: string, purpose: string];

export interface RedisCommand extends Described {
  readonly works: 'with-redis';
  readonly name: RedisCommandName;
}

export interface LocalCommand extends Described {
  readonly works: 'locally';
  readonly name: LocalCommandName;
}

/** One command of the program, as its help describes it. */
export type Command = RedisCommand | LocalCommand;
