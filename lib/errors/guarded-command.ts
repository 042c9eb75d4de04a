/**
 * A command of `lock.guarded` was answered with an error. Those before it have taken effect, those after it were not run: as in a
 * transaction of Redis, nothing is rolled back.
 */
export class GuardedCommandError extends Error {
  override readonly name = 'GuardedCommandError';
  /** Which of the commands, counted from 0. */
  readonly index: number;
  /** The name of the command. */
  readonly command: string;

  constructor(facts: {
    readonly index: number;
    readonly command: string;
    readonly message: string;
  }) {
    super(
      `Command ${String(facts.index + 1)} of guarded() (${facts.command}) failed: ${facts.message}. Those before it have taken effect.`,
    );
    this.index = facts.index;
    this.command = facts.command;
  }
}
