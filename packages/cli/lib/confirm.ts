import type { InterventionRequest } from 'nestjs-holdfast/admin';
import type { Context } from './command.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { toJson } from './text/printable.js';
import { UsageError } from './usage-error.js';

/**
 * `undefined` in a dry run, which needs no reason.
 *
 * @throws UsageError without a reason
 */
export function interventionOf(
  { options }: Context,
  command: string,
): InterventionRequest | undefined {
  const { reason, by } = options;
  if (options['dry-run'] === true) return undefined;
  if (reason === undefined)
    throw new UsageError(
      `"${command}" needs --reason: holders are notified, and the audit keeps it. Write --reason 'stuck since 3 am'.`,
    );
  return by === undefined ? { reason } : { reason, by };
}

/** Whether the question can be asked, or need not be. Says why not. */
export function mayAct({ options, terminal }: Context, command: string): boolean {
  if (options.yes === true || options['dry-run'] === true || terminal.canAsk) return true;
  terminal.note(
    `"${command}" asks before it acts, and this is no terminal. Nothing was changed. Give --yes to act without a question.\n`,
  );
  return false;
}

/** Whether the answer was yes. */
export async function confirmed(
  { options, terminal, ink }: Context,
  question: string,
): Promise<boolean> {
  if (options.yes === true) return true;
  const answer = await terminal.ask(`${ink.bold(question)} [y/N] `);
  if (/^\s*y(es)?\s*$/i.test(answer)) return true;
  terminal.note('Nothing was changed.\n');
  return false;
}

/** What a dry run prints instead of acting. */
interface Preview {
  readonly question: string;
  /** What is printed: the holders that it would reach. */
  readonly lines: readonly string[];
  /** For `--json`. */
  readonly facts: object;
}

export function preview(
  { options, terminal }: Context,
  { question, lines, facts }: Preview,
): ExitCode {
  if (options.json === true) terminal.write(`${toJson({ ...facts, dryRun: true })}\n`);
  else {
    terminal.write(`${[question, ...lines.map((line) => `  ${line}`)].join('\n')}\n`);
    terminal.note('Dry run: nothing was changed.\n');
  }
  return EXIT.ok;
}
