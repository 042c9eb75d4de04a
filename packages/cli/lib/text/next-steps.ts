import type { InstanceInfo } from 'nestjs-holdfast/admin';
import { printable } from './printable.js';
import { wrappedLine } from './wrap.js';

/** A command to copy stays on one line. */
export type Line = string | { readonly command: string };

const toProcess = ({ host, pid }: InstanceInfo) => ({
  look: [
    `On ${printable(host)}, look at the process:`,
    { command: `ps -o stat=,lstart=,args= -p ${String(pid)}` },
  ],
  kill: { command: `kill -9 ${String(pid)}` },
});

/** What to do about an unresponsive process before its keys are released. A stopped one would continue its work. */
export function nextSteps(instance: InstanceInfo): readonly Line[] {
  const { look, kill } = toProcess(instance);
  return [
    ...look,
    'T or D: it is stopped. Kill it, and then release its keys:',
    kill,
    'R or S: it is busy or cut off. Do not kill it, and do not release its keys. If it stays so, its lease ends by itself, or it replies again.',
    'Nothing, or Z: it is dead. Release its keys.',
  ];
}

/** The same after the release. */
export function stepsAfter(instance: InstanceInfo): readonly Line[] {
  const { look, kill } = toProcess(instance);
  return [
    ...look,
    'T or D: it is stopped. Kill it, because its work may continue otherwise:',
    kill,
    'R or S: it is busy or cut off. Do not kill it. Its work may continue until its signal aborts: check what it did.',
    'Nothing, or Z: it is dead.',
  ];
}

/** Wrapped to the width of the terminal. Commands stand further to the right. */
export const fittedLines = (
  lines: readonly Line[],
  columns: number,
  commandsAt = 2,
): readonly string[] =>
  lines.flatMap((line) =>
    typeof line === 'string'
      ? wrappedLine(line, columns)
      : `${' '.repeat(commandsAt)}${line.command}`,
  );
