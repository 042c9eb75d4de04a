import type {
  AuditEntry,
  CallOrigin,
  HolderInfo,
  LockDescription,
  WaiterInfo,
} from 'nestjs-holdfast/admin';
import { commandAgain } from '../again.js';
import type { Context } from '../command.js';
import type { Ink } from './ink.js';
import { fittedLines, nextSteps, type Line } from './next-steps.js';
import { printable } from './printable.js';
import { lasting, moment } from './times.js';
import { counted, nameOf } from './who.js';

/** At most this many callers of each process are shown of a long line. */
const MOST_CALLERS = 10;

/** Below the lines of a holder. */
const COMMANDS_AT = 6;

interface Drawing {
  readonly nowMs: number;
  readonly ink: Ink;
  /** The next command, for the same servers. */
  readonly again: (words: readonly string[]) => string;
}

/** Whether anything is known of the key. */
export const isInUse = ({ holders, line, once }: LockDescription): boolean =>
  holders.length > 0 || line.length > 0 || once !== undefined;

/** How many callers wait, as far as is known: an unresponsive process counts for one. */
export const callersIn = (line: readonly WaiterInfo[]): number =>
  line.reduce((sum, { callers }) => sum + Math.max(1, callers?.length ?? 1), 0);

/** One key, for people, wrapped to the width of the terminal. */
export function descriptionLines(lock: LockDescription, context: Context): readonly string[] {
  const drawing = {
    nowMs: context.runtime.now().wallMs,
    ink: context.ink,
    again: (words: readonly string[]) => commandAgain(context, words),
  };
  const { columns } = context.terminal.size();
  const lines: readonly Line[] = [
    headline(lock, drawing),
    ...holderLines(lock, drawing),
    ...waiterLines(lock, drawing),
    ...onceLines(lock, drawing),
    ...auditLines(lock.audit, drawing),
  ];
  return fittedLines(lines, columns, COMMANDS_AT);
}

function headline(
  { key, state, mode, limit, holders, fencingToken }: LockDescription,
  { ink }: Drawing,
): string {
  const token = fencingToken === undefined ? '' : `, last fencing token ${String(fencingToken)}`;
  const facts =
    state === 'held' ? `held, ${mode ?? 'exclusive'}${placesIn(mode, holders)}` : 'free';
  const set = limit === undefined ? '' : `, limit set to ${String(limit)}`;
  return `${ink.bold(printable(key))}  ${facts}${set}${token}`;
}

/** How many places of a limit are in use. */
function placesIn(mode: string | undefined, holders: readonly HolderInfo[]): string {
  if (mode?.startsWith('limit') !== true) return '';
  const inUse = holders.reduce((sum, { places = 1 }) => sum + places, 0);
  return `, ${counted(inUse, 'place')} in use`;
}

function holderLines({ key, holders, line }: LockDescription, drawing: Drawing): readonly Line[] {
  if (holders.length === 0) return [];
  const likely = commonOrigin(line);
  return [
    '',
    drawing.ink.bold('Held by'),
    ...holders.flatMap((each) => [
      ...holder(each, likely, drawing),
      ...stepsFor(each, key, drawing),
    ]),
  ];
}

/** What `--if-holder` takes. */
export const seenText = ({ leaseId, fencingToken }: HolderInfo): string =>
  fencingToken === undefined ? leaseId : `${leaseId}:${String(fencingToken)}`;

function stepsFor(info: HolderInfo, key: string, { again }: Drawing): readonly Line[] {
  const { instance, isUnresponsive } = info;
  if (!isUnresponsive || instance === undefined) return [];
  const release = again(['release', key, '--if-holder', seenText(info), '--reason', '…']);
  const steps = [...nextSteps(instance), 'To release this key:', { command: release }];
  return ['    next:', ...steps.map((line) => (typeof line === 'string' ? `    ${line}` : line))];
}

/** Where all who wait call from: a key is mostly locked in one place. Empty where they differ. */
function commonOrigin(line: readonly WaiterInfo[]): string {
  const origins = new Set(line.flatMap(({ callers = [] }) => callers.map(originOf)));
  const [only = ''] = origins;
  return origins.size === 1 ? only : '';
}

function holder(info: HolderInfo, likely: string, { nowMs, ink }: Drawing): readonly string[] {
  const { instance, since, remainingMs, isUnresponsive, isDetached, places = 1 } = info;
  const lines = [
    `  ${instance === undefined ? unknownHolder(info) : nameOf(instance)}`,
    `    holder ${seenText(info)}`,
  ];
  if (since !== undefined)
    lines.push(`    since ${moment(since)}, for ${lasting(nowMs - since.getTime())}`);
  if (places > 1) lines.push(`    has ${counted(places, 'place')}`);
  const origin = originOf(info);
  if (origin !== '') lines.push(`    in ${origin}`);
  else if (isUnresponsive && likely !== '')
    lines.push(`    in a method that only it knows, perhaps as those who wait: ${likely}`);
  lines.push(
    remainingMs === Infinity
      ? '    the lock never ends by itself'
      : `    the lease ends in ${lasting(remainingMs)} unless it is ${isDetached ? 'attached' : 'renewed'}`,
  );
  if (isUnresponsive)
    lines.push(
      `    it is ${ink.red('unresponsive')}: busy, frozen, cut off or dead${lastSeen(info, nowMs)}`,
    );
  return lines;
}

/** Who holds a key, if no instance is known to. */
export function unknownHolder({ isForeign, isDetached = false }: HolderInfo): string {
  if (isDetached) return 'no process at the moment: it was detached, and waits to be attached';
  return isForeign
    ? 'other software, which Holdfast knows nothing of'
    : 'an instance that has no record here: it has been gone for an hour, or keeps no record';
}

const lastSeen = ({ instance }: HolderInfo, nowMs: number): string =>
  instance === undefined
    ? ''
    : `. It was last seen ${lasting(nowMs - instance.seenAt.getTime())} ago, instance id ${printable(instance.id)}`;

/** `OrdersService.pay (order:<orderId>)` */
function originOf({ method, template, place }: CallOrigin): string {
  const where = method ?? place;
  if (where === undefined) return template === undefined ? '' : printable(template);
  return printable(template === undefined ? where : `${where} (${template})`);
}

function waiterLines({ line }: LockDescription, drawing: Drawing): readonly string[] {
  if (line.length === 0) return [];
  const title = `Waiting: ${counted(callersIn(line), 'caller')} in ${counted(line.length, 'process', 'processes')}`;
  return ['', drawing.ink.bold(title), ...line.flatMap((each) => waiter(each, drawing))];
}

function waiter(info: WaiterInfo, { nowMs, ink }: Drawing): readonly string[] {
  const { position, instance, places = 1, since, keys, callers, isUnresponsive } = info;
  const name = instance === undefined ? 'a process that has no record here' : nameOf(instance);
  const waited = since === undefined ? '' : `, since ${moment(since)}`;
  const state = isUnresponsive ? `, ${ink.red('unresponsive')}` : '';
  const lines = [`  ${String(position)}. ${name}${waited}${state}`];
  if (places > 1) lines.push(`     for ${counted(places, 'place')}`);
  if (keys !== undefined) lines.push(`     for all of ${printable(keys.join(', '))}`);
  for (const caller of callers?.slice(0, MOST_CALLERS) ?? []) {
    const origin = originOf(caller);
    const where = origin === '' ? 'a call by hand' : origin;
    lines.push(`     ${where}, for ${lasting(nowMs - caller.since.getTime())}`);
  }
  const more = (callers?.length ?? 0) - MOST_CALLERS;
  if (more > 0) lines.push(`     and ${counted(more, 'caller')} more`);
  return lines;
}

function onceLines({ once }: LockDescription, { ink }: Drawing): readonly string[] {
  if (once === undefined) return [];
  const { state, attempts, error, keptForMs } = once;
  const told = error === undefined ? '' : `, last error: ${printable(error)}`;
  return [
    '',
    ink.bold('Work that is to be done once'),
    `  ${state}, ${counted(attempts, 'attempt')}${told}`,
    `  remembered for another ${lasting(keptForMs)}`,
  ];
}

function auditLines(audit: readonly AuditEntry[], { ink }: Drawing): readonly string[] {
  if (audit.length === 0) return [];
  const lines = audit.map(
    ({ at, action, by, reason }) =>
      `  ${moment(at)}  ${action} by ${printable(by)}: ${printable(reason)}`,
  );
  return ['', ink.bold('What operators did'), ...lines];
}
