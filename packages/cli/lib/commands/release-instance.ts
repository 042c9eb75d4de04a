import type { InstanceInfo } from 'nestjs-holdfast/admin';
import type { Context, RunWithRedis } from '../command.js';
import { confirmed, interventionOf, mayAct } from '../confirm.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { codeOf, factsOf } from '../outcome.js';
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
  const nowMs = runtime.now().wallMs;
  if (!(await confirmed(context, questionOf(id, instance, nowMs)))) return EXIT.unconfirmed;
  const outcome = await admin().releaseInstance(instance ?? { id }, request);
  if (outcome.status === 'refused') return reportsAgain(context, outcome.now);
  const keys = outcome.status === 'done' ? outcome.keys : [];
  const facts = outcome.status === 'done' ? factsOf(outcome) : {};
  if (options.json === true) terminal.write(`${toJson({ id, released: keys, ...facts })}\n`);
  else if (keys.length === 0) terminal.write(`${printable(id)} holds nothing.\n`);
  else {
    const names = keys.map((key) => `  ${printable(key)}\n`).join('');
    terminal.write(`${ink.green('Released')} ${counted(keys.length, 'key')}:\n${names}`);
  }
  return outcome.status === 'done' ? codeOf(context, outcome) : EXIT.nothing;
};

function reportsAgain({ word: id, options, terminal, ink }: Context, now: InstanceInfo): ExitCode {
  if (options.json === true) terminal.write(`${toJson({ id, released: [], now })}\n`);
  else terminal.note(`${ink.red('Nothing was changed')}: ${nameOf(now)} reports again.\n`);
  return EXIT.refused;
}

function questionOf(id: string, instance: InstanceInfo | undefined, nowMs: number): string {
  if (instance === undefined)
    return `No instance ${printable(id)} has a record here; "instances" lists them.\nRelease what it may hold?`;
  const seen = lasting(nowMs - instance.seenAt.getTime());
  const state = instance.isUnresponsive
    ? `It was last seen ${seen} ago.`
    : `It reported ${seen} ago, so it is alive: its work has to stop at its signals.`;
  return `${nameOf(instance)}. ${state}\nRelease everything that it holds?`;
}
