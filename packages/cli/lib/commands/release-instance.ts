import type { InstanceInfo, LockAdmin } from 'nestjs-holdfast/admin';
import type { Context, RunWithRedis } from '../command.js';
import { confirmed, interventionOf, mayAct, preview } from '../confirm.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { noteNobody } from '../nothing.js';
import { codeOf, factsOf } from '../outcome.js';
import { fittedLines, nextSteps } from '../text/next-steps.js';
import { printable, toJson } from '../text/printable.js';
import { lasting } from '../text/times.js';
import { counted, nameOf } from '../text/who.js';

/** Frees what a dead machine held. */
export const releaseInstance: RunWithRedis = async (context) => {
  const request = interventionOf(context, 'release-instance');
  if (!mayAct(context, 'release-instance')) return EXIT.unconfirmed;
  const { admin, word: id, options, terminal, ink, runtime, target } = context;
  if (options.json !== true) terminal.note(`${ink.dim(`Redis at ${target.shown}`)}\n`);
  const instance = (await admin().instances()).find((each) => each.id === id);
  if (instance?.isUnresponsive === false) return replies(context, instance);
  if (instance !== undefined && options.json !== true) {
    const steps = fittedLines(nextSteps(instance), terminal.size().columns);
    terminal.note(`${steps.join('\n')}\n\n`);
  }
  const nowMs = runtime.now().wallMs;
  if (request === undefined) return wouldRelease(context, instance);
  if (!(await confirmed(context, questionOf(id, instance, nowMs)))) return EXIT.unconfirmed;
  const outcome = await admin().releaseInstance({ id, isUnresponsive: true }, request);
  if (outcome.status === 'refused') return replies(context, outcome.now);
  if (outcome.status === 'nothing') return holdsNothing(context);
  const { keys } = outcome;
  if (options.json === true)
    terminal.write(`${toJson({ id, released: keys, ...factsOf(outcome) })}\n`);
  else {
    const names = keys.map((key) => `  ${printable(key)}\n`).join('');
    terminal.write(`${ink.green('Released')} ${counted(keys.length, 'key')}:\n${names}`);
  }
  return codeOf(context, outcome);
};

async function wouldRelease(
  context: Context,
  instance: InstanceInfo | undefined,
): Promise<ExitCode> {
  const { admin, word: id, terminal, runtime } = context;
  const question = questionOf(id, instance, runtime.now().wallMs);
  const keys = instance === undefined ? [] : await keysOf(admin(), id);
  if (keys.length > 0)
    return preview(context, {
      question,
      lines: keys.map(printable),
      facts: { id, released: [], keys },
    });
  if (instance === undefined)
    terminal.note(`${question}\nWhat an instance without a record holds is not known before.\n`);
  return holdsNothing(context);
}

async function keysOf(admin: LockAdmin, id: string): Promise<readonly string[]> {
  const keys: string[] = [];
  for await (const { key, leases } of admin.list())
    if (leases.some(({ instanceId }) => instanceId === id)) keys.push(key);
  return keys.sort();
}

async function holdsNothing(context: Context): Promise<ExitCode> {
  const { word: id, options, terminal } = context;
  if (options.json === true) terminal.write(`${toJson({ id, released: [] })}\n`);
  else terminal.write(`${printable(id)} holds nothing.\n`);
  await noteNobody(context);
  return EXIT.nothing;
}

/** The work of a process that replies does not end with its locks. */
function replies(context: Context, now: InstanceInfo): ExitCode {
  const { word: id, options, terminal, ink, runtime } = context;
  if (options.json === true) {
    terminal.write(`${toJson({ id, released: [], now })}\n`);
    return EXIT.refused;
  }
  const seen = lasting(runtime.now().wallMs - now.seenAt.getTime());
  const why = now.isListening
    ? 'replies, so its work runs'
    : `cannot be asked, and reported ${seen} ago, so its work may run`;
  terminal.note(
    `${ink.red('Nothing was changed')}: ${nameOf(now)} ${why}. Stop the process instead, or release its keys one by one.\n`,
  );
  return EXIT.refused;
}

function questionOf(id: string, instance: InstanceInfo | undefined, nowMs: number): string {
  if (instance === undefined)
    return `No instance ${printable(id)} has a record here; "instances" lists them.\nRelease what it may hold?`;
  const seen = lasting(nowMs - instance.seenAt.getTime());
  return `${nameOf(instance)} is unresponsive. It was last seen ${seen} ago.\nRelease everything that it holds?`;
}
