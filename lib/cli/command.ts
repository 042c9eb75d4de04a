import type { LockAdmin } from '../admin/lock-admin.js';
import type { Runtime } from '../time/runtime.js';
import type { ExitCode } from './exit-codes.js';
import type { GivenOptions, OptionName } from './options.js';
import type { Session } from './session.js';
import type { Target } from './target.js';
import type { Terminal } from './terminal.js';
import type { Ink } from './text/ink.js';

/** What a command has to work with. */
export interface Context {
  /** The word behind the command; empty where none was given. */
  readonly word: string;
  readonly options: GivenOptions;
  readonly terminal: Terminal;
  readonly ink: Ink;
  readonly runtime: Runtime;
  readonly target: Target;
  /** Opened when it is first asked for, and closed at the end. */
  readonly session: () => Session;
  readonly admin: () => LockAdmin;
}

/** One command of the program. */
export interface Command {
  readonly name: string;
  readonly summary: string;
  /** The word behind it. */
  readonly word?: { readonly name: string; readonly isRequired: boolean };
  /** Beside the common ones. */
  readonly options: readonly OptionName[];
  run(context: Context): Promise<ExitCode>;
}
