import type { InterventionOutcome } from 'nestjs-holdfast/admin';
import type { Context } from './command.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { printable } from './text/printable.js';

type Done = Extract<InterventionOutcome<never>, { readonly status: 'done' }>;

/** What `--json` prints of it beside the keys. */
export const factsOf = ({ unconfirmed, notRecorded }: Done): object => ({
  ...(unconfirmed && { unconfirmed }),
  ...(notRecorded !== undefined && { notRecorded }),
});

/** Prints what Redis did not confirm, and why the audit log has no entry. Returns the exit code. */
export function codeOf({ terminal, ink }: Context, { unconfirmed, notRecorded }: Done): ExitCode {
  if (unconfirmed !== undefined)
    terminal.note(
      `${ink.red('Redis did not confirm the release of')} ${printable(unconfirmed.join(', '))}\n`,
    );
  if (notRecorded !== undefined)
    terminal.note(
      `${ink.red('It was done, and the audit log could not be written:')} ${printable(notRecorded)}\n`,
    );
  if (unconfirmed !== undefined) return EXIT.unavailable;
  return notRecorded === undefined ? EXIT.ok : EXIT.notRecorded;
}
