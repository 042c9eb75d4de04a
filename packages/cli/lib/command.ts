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

interface Described {
  readonly name: string;
  readonly summary: string;
  /** The word behind it. */
  readonly word?: {
    readonly name: string;
    readonly isRequired: boolean;
    /** Whether there may be several. */
    readonly isList?: true;
  };
  /** Beside the common ones. */
  readonly options: readonly OptionName[];
}

/** A command that asks a Redis. */
export interface RedisCommand extends Described {
  readonly works: 'with-redis';
  run(context: Context): Promise<ExitCode>;
}

/** A command that needs none. */
export interface LocalCommand extends Described {
  readonly works: 'locally';
  run(context: LocalContext): Promise<ExitCode>;
}

/** One command of the program. */
export type Command = RedisCommand | LocalCommand;
