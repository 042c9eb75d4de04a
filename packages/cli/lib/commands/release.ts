import type { HolderInfo, LockDescription, SeenHolder } from 'nestjs-holdfast/admin';
import { describe } from 'nestjs-holdfast/tools';
import type { Context, RunWithRedis } from '../command.js';
import { confirmed, interventionOf, mayAct, preview } from '../confirm.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { noteUnknownKey } from '../nothing.js';
import { codeOf, factsOf } from '../outcome.js';
import { callersIn, descriptionLines, seenText, unknownHolder } from '../text/description.js';
import { fittedLines, stepsAfter } from '../text/next-steps.js';
import { printable, toJson } from '../text/printable.js';
import { counted, nameOf } from '../text/who.js';
import { UsageError } from '../usage-error.js';

/** Frees one key. */
export const release: RunWithRedis = async (context) => {
  const request = interventionOf(context, 'release');
  const named = holdersIn(context);
  if (!mayAct(context, 'release')) return EXIT.unconfirmed;
  const { admin, word: key, options, terminal, ink, runtime, target } = context;
  const lock = await admin().describe(key);
  if (lock.holders.length === 0) return nobodyHeld(context);
  if (options.json !== true) terminal.note(`${ink.dim(`Redis at ${target.shown}`)}\n`);
  const holders = named === undefined ? lock.holders : lock.holders.filter(isAmong(named));
  if (holders.length === 0) return otherHolds(context, lock);
  if (options.json !== true) terminal.note(`${linesOf(context, lock)}\n\n`);
  const question = questionOf(key, holders);
  if (request === undefined) {
    const lines = holders.map(toWhom);
    return preview(context, { question, lines, facts: { key, released: false, holders } });
  }
  if (!(await confirmed(context, question))) return EXIT.unconfirmed;
  const at = new Date(runtime.now().wallMs);
  const outcome = await admin().release(
    named === undefined ? lock : { key, holders: named },
    request,
  );
  if (outcome.status === 'nothing') return nobodyHeld(context);
  if (outcome.status === 'refused') return otherHolds(context, outcome.now);
  if (options.json === true)
    terminal.write(`${toJson({ key, released: true, at, ...factsOf(outcome) })}\n`);
  else {
    terminal.write(`${ink.green('Released')} ${printable(key)}${consequenceOf(lock)}\n`);
    noteUnresponsive(context, holders);
  }
  return codeOf(context, outcome);
};

/**
 * The holders of `--if-holder`; `undefined` if it was not given.
 *
 * @throws UsageError without them if the program does not show the holder and ask
 */
function holdersIn({ options }: Context): readonly SeenHolder[] | undefined {
  const { 'if-holder': named, yes } = options;
  if (named !== undefined) return named.split(',').map(holderIn);
  if (yes !== true) return undefined;
  throw new UsageError(
    '"release" with --yes needs --if-holder, so that a later holder keeps the key: --if-holder 3f2a9c1d0e4b. "show" prints it.',
  );
}

/** As `show` prints it: the id of the lease, and the fencing token if it is known. */
function holderIn(text: string): SeenHolder {
  const [, leaseId, token] = /^([0-9a-f]{12})(?::(\d{1,16}))?$/.exec(text.trim()) ?? [];
  if (leaseId === undefined)
    throw new UsageError(
      `Option --if-holder must be what "show" prints, such as 3f2a9c1d0e4b, received ${describe(text)}.`,
    );
  return token === undefined ? { leaseId } : { leaseId, fencingToken: Number(token) };
}

/** Callers of one process pass a lease on, each with its own token. */
const isAmong =
  (named: readonly SeenHolder[]) =>
  ({ leaseId, fencingToken: current }: HolderInfo): boolean =>
    named.some(
      ({ leaseId: id, fencingToken = current }) =>
        id === leaseId && (current === undefined || fencingToken === current),
    );

const toWhom = (holder: HolderInfo): string =>
  `holder ${seenText(holder)}: ${holder.instance === undefined ? unknownHolder(holder) : nameOf(holder.instance)}`;

const linesOf = (context: Context, lock: LockDescription): string =>
  descriptionLines(lock, context).join('\n');

function otherHolds(context: Context, now: LockDescription): ExitCode {
  const { word: key, options, terminal, ink } = context;
  if (options.json === true) terminal.write(`${toJson({ key, released: false, now })}\n`);
  else {
    terminal.note(`${ink.red('Nothing was changed')}: another holder has ${printable(key)} now.\n`);
    terminal.note(`${linesOf(context, now)}\n`);
  }
  return EXIT.refused;
}

async function nobodyHeld(context: Context): Promise<ExitCode> {
  const { word: key, options, terminal } = context;
  if (options.json === true) terminal.write(`${toJson({ key, released: false })}\n`);
  else terminal.write(`${printable(key)} is free: it has no holder.\n`);
  await noteUnknownKey(context);
  return EXIT.nothing;
}

/** Work continues after its lock was taken away, so the question names the holder. */
function questionOf(key: string, holders: readonly HolderInfo[]): string {
  const living = holders.flatMap(({ instance, isUnresponsive }) =>
    instance === undefined || isUnresponsive ? [] : [nameOf(instance)],
  );
  const [first] = living;
  const warning =
    first === undefined
      ? ''
      : `${first} replies, so its work may be running: the work has to stop at its signal.\n`;
  return `${warning}Release ${printable(key)}?`;
}

/** A frozen process continues its work when it is resumed. */
function noteUnresponsive({ terminal, ink }: Context, holders: readonly HolderInfo[]): void {
  for (const { instance, isUnresponsive } of holders) {
    if (instance === undefined || !isUnresponsive) continue;
    const steps = fittedLines(stepsAfter(instance), terminal.size().columns);
    terminal.note(`${ink.red(`${nameOf(instance)} is unresponsive.`)}\n${steps.join('\n')}\n`);
  }
}

function consequenceOf({ key, line }: LockDescription): string {
  if (line.length === 0) return '. No caller waits for it.';
  const waiting = counted(callersIn(line), 'waiting caller');
  const unresponsive = line.filter(({ isUnresponsive }) => isUnresponsive).length;
  if (unresponsive === 0) return `. The first of ${waiting} gets it.`;
  if (unresponsive < line.length)
    return `. The first of ${waiting} whose process is alive gets it: ${counted(unresponsive, 'process is', 'processes are')} unresponsive.`;
  return `. Every process of its ${waiting} is unresponsive. If they are dead, it stays free until the next call: see "show ${printable(key)}".`;
}
