import { LockConfigurationError } from '../errors.js';
import { describe } from '../errors/describe.js';
import type { WriteCommand } from '../store/lock-store.js';

/** Lua cannot pass on more. */
const MOST_PARTS = 4_000;

/** For JavaScript, and for what no command can be. */
export function checkCommands(commands: unknown): asserts commands is readonly WriteCommand[] {
  if (!Array.isArray(commands) || commands.length === 0) throw wrong(describe(commands));
  for (const [index, command] of (commands as readonly unknown[]).entries()) {
    const which = `command ${String(index + 1)}`;
    if (!Array.isArray(command) || typeof command[0] !== 'string' || command[0] === '')
      throw wrong(`${describe(command)} as ${which}`);
    if (command.length > MOST_PARTS)
      throw wrong(
        `${which} with ${String(command.length)} parts, and ${String(MOST_PARTS)} are the most`,
      );
    const odd = (command as readonly unknown[]).find((part) => !isPart(part));
    if (command.some((part) => !isPart(part))) throw wrong(`${which} with ${describe(odd)} in it`);
  }
}

const isPart = (part: unknown): boolean =>
  typeof part === 'string' || (typeof part === 'number' && Number.isFinite(part));

const wrong = (received: string): LockConfigurationError =>
  new LockConfigurationError(
    `guarded() takes a list of commands of Redis, each a list of texts and numbers, received ${received}. ` +
      "Write lock.guarded([['set', 'balance:7', 90], ['incr', 'transfers']]).",
  );
