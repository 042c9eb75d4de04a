import type { LockDescription } from 'nestjs-holdfast/admin';
import type { Context, RunWithRedis } from '../command.js';
import { confirmed, interventionOf, mayAct, preview } from '../confirm.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { noteUnknownKey } from '../nothing.js';
import { codeOf, factsOf } from '../outcome.js';
import { printable, toJson } from '../text/printable.js';
import { counted } from '../text/who.js';

/** Has work done again that was to be done once. */
export const forget: RunWithRedis = async (context) => {
  const request = interventionOf(context, 'forget');
  if (!mayAct(context, 'forget')) return EXIT.unconfirmed;
  const { admin, word: key, options, terminal, ink, target } = context;
  const lock = await admin().describe(key);
  const { once } = lock;
  if (once === undefined) return nothingKnown(context);
  if (options.json !== true) terminal.note(`${ink.dim(`Redis at ${target.shown}`)}\n`);
  const question = `The work of ${printable(key)} is ${once.state} after ${counted(once.attempts, 'attempt')}. Forget that, so that it is done again?`;
  if (request === undefined)
    return preview(context, { question, lines: [], facts: { key, forgotten: false, once } });
  if (!(await confirmed(context, question))) return EXIT.unconfirmed;
  const outcome = await admin().forgetOnce(lock, request);
  if (outcome.status === 'nothing') return nothingKnown(context);
  if (outcome.status === 'refused') return hasChanged(context, outcome.now);
  if (options.json === true)
    terminal.write(`${toJson({ key, forgotten: true, ...factsOf(outcome) })}\n`);
  else
    terminal.write(`${ink.green('Forgotten')} ${printable(key)}. The next caller does the work.\n`);
  return codeOf(context, outcome);
};

function hasChanged(context: Context, now: LockDescription): ExitCode {
  const { word: key, options, terminal, ink } = context;
  if (options.json === true) terminal.write(`${toJson({ key, forgotten: false, now })}\n`);
  else {
    const { state = 'unknown', attempts = 0 } = now.once ?? {};
    terminal.note(
      `${ink.red('Nothing was changed')}: the work of ${printable(key)} is ${state} after ${counted(attempts, 'attempt')} by now.\n`,
    );
  }
  return EXIT.refused;
}

async function nothingKnown(context: Context): Promise<ExitCode> {
  const { word: key, options, terminal } = context;
  if (options.json === true) terminal.write(`${toJson({ key, forgotten: false })}\n`);
  else terminal.write(`Nothing is known of work under ${printable(key)}.\n`);
  await noteUnknownKey(context);
  return EXIT.nothing;
}
