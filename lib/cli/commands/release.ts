import type { LockDescription } from '../../admin/lock-admin.types.js';
import type { Context, RedisCommand } from '../command.js';
import { confirmed, interventionOf, mayAct } from '../confirm.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { callersIn, descriptionLines } from '../text/description.js';
import { printable, toJson } from '../text/printable.js';
import { counted, nameOf } from '../text/who.js';

/** Frees one key. */
export const release: RedisCommand = {
  works: 'with-redis',
  name: 'release',
  summary: 'Frees a key, no matter who holds it',
  word: { name: 'key', isRequired: true },
  options: ['reason', 'by', 'yes'],
  async run(context) {
    const request = interventionOf(context, 'release');
    if (!mayAct(context, 'release')) return EXIT.unconfirmed;
    const { admin, word: key, options, terminal, ink, runtime, target } = context;
    const lock = await admin().describe(key);
    if (lock.holders.length === 0) return nobodyHeld(context);
    if (options.json !== true) {
      terminal.note(`${ink.dim(`Redis at ${target.shown}`)}\n`);
      const nowMs = runtime.now().wallMs;
      terminal.note(`${descriptionLines(lock, { nowMs, ink }).join('\n')}\n\n`);
    }
    if (!(await confirmed(context, questionOf(lock)))) return EXIT.unconfirmed;
    const at = new Date(runtime.now().wallMs);
    if (!(await admin().release(key, request))) return nobodyHeld(context);
    if (options.json === true) terminal.write(`${toJson({ key, released: true, at })}\n`);
    else {
      terminal.write(`${ink.green('Released')} ${printable(key)}${consequenceOf(lock)}\n`);
      for (const warning of warningsOf(lock)) terminal.note(`${ink.red(warning)}\n`);
    }
    return EXIT.ok;
  },
};

function nobodyHeld({ word: key, options, terminal }: Context): ExitCode {
  if (options.json === true) terminal.write(`${toJson({ key, released: false })}\n`);
  else terminal.write(`${printable(key)} is free: it has no holder.\n`);
  return EXIT.nothing;
}

/** Work continues after its lock was taken away, so the question names the holder. */
function questionOf({ key, holders }: LockDescription): string {
  const living = holders.flatMap(({ instance, isSilent }) =>
    instance === undefined || isSilent ? [] : [nameOf(instance)],
  );
  const [first] = living;
  const warning =
    first === undefined
      ? ''
      : `${first} answers, so its work may be running: the work has to stop at its signal.\n`;
  return `${warning}Release ${printable(key)}?`;
}

/** For holders that did not reply: a frozen process continues when it is resumed. */
const warningsOf = ({ holders }: LockDescription): readonly string[] =>
  holders.flatMap(({ instance, isSilent }) =>
    instance === undefined || !isSilent
      ? []
      : [
          `${nameOf(instance)} did not answer. If it still exists, kill it: its work may continue when it runs again, until its signal aborts.`,
        ],
  );

function consequenceOf({ key, line }: LockDescription): string {
  if (line.length === 0) return '. No caller waits for it.';
  const waiting = counted(callersIn(line), 'waiting caller');
  const silent = line.filter(({ isSilent }) => isSilent).length;
  if (silent === 0) return `. The first of ${waiting} gets it.`;
  if (silent < line.length)
    return `. The first of ${waiting} whose process is alive gets it: ${counted(silent, 'process', 'processes')} did not answer.`;
  return `. No process of its ${waiting} answered. If they are dead, it stays free until the next call: see "show ${printable(key)}".`;
}
