/** The exit codes of the program, for scripts: docs/cli.md has a row for each. */
export const EXIT = {
  /** Done. `doctor`: no errors. */
  ok: 0,
  /** The key is not held, there is nothing under that name, or no service reports where a command found nothing. */
  nothing: 1,
  /** The command line is wrong. */
  usage: 2,
  /** Redis cannot be reached, or refuses what was asked. */
  unavailable: 3,
  /** `doctor` found at least one error. */
  unhealthy: 4,
  /** The question was not answered with yes, or could not be asked. */
  unconfirmed: 5,
  /** `migrate`: some files could not be read or written, and were left alone. */
  incomplete: 6,
  /** Done, but the audit log could not be written. */
  notRecorded: 7,
  /** Nothing was changed: another holder has the key by now, or what was seen has changed otherwise. */
  refused: 8,
  /** A fault of this program. */
  internal: 70,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
