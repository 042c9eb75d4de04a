/**
 * Redis replied to a command of `lock.guarded` with an error. The commands before it took effect, and those after it
 * were not run. As in a transaction of Redis, nothing is rolled back.
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
