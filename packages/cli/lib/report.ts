import {
  LockConfigurationError,
  LockKeyError,
  LockStoreUnavailableError,
  redact,
} from 'nestjs-holdfast/tools';
import { EXIT, type ExitCode } from './exit-codes.js';
import { programIn } from './program-name.js';
import type { Terminal } from './terminal.js';
import { inkFor } from './text/ink.js';
import { printable } from './text/printable.js';
import { UsageError } from './usage-error.js';

/** Prints what went wrong, without passwords. Returns the exit code. */
export function report(error: unknown, terminal: Terminal): ExitCode {
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
