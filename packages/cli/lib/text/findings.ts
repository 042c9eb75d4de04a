import type { Finding, Level } from '../doctor/finding.js';
import type { Ink } from './ink.js';
import { printable } from './printable.js';
import { padded } from './width.js';
import { counted } from './who.js';
import { wrapped } from './wrap.js';

const LEVEL_COLUMNS = 'warning'.length;
const SHORTEST_TEXT = 20;

const paintOf = (level: Level, ink: Ink): ((text: string) => string) =>
  ({ ok: ink.green, warning: ink.yellow, error: ink.red, unknown: ink.dim })[level];

/** The findings of `doctor`, server by server, wrapped to the given columns. */
export function findingLines(
  findings: readonly Finding[],
  columns: number,
  ink: Ink,
): readonly string[] {
  const checkColumns = Math.max(...findings.map(({ check }) => check.length));
  const indent = LEVEL_COLUMNS + checkColumns + 6;
  const available = Math.max(SHORTEST_TEXT, columns - indent);
  const lines: string[] = [];
  let heading: string | undefined;
  for (const { check, level, server = 'Together', text, remedy } of findings) {
    if (server !== heading) lines.push(...(heading === undefined ? [] : ['']), ink.bold(server));
    heading = server;
    const told = wrapped(printable(text), available);
    const advice = remedy === undefined ? [] : wrapped(`→ ${printable(remedy)}`, available);
    const start = `  ${paintOf(level, ink)(padded(level, LEVEL_COLUMNS))}  ${padded(check, checkColumns)}  `;
    [...told, ...advice].forEach((line, index) => {
      lines.push(index === 0 ? start + line : ' '.repeat(indent) + line);
    });
  }
  return [...lines, '', verdict(findings, ink)];
}

/** How many findings have a level. */
export const numberOf = (findings: readonly Finding[], level: Level): number =>
  findings.filter((finding) => finding.level === level).length;

function verdict(findings: readonly Finding[], ink: Ink): string {
  const [errors, warnings] = [numberOf(findings, 'error'), numberOf(findings, 'warning')];
  const unknowns = numberOf(findings, 'unknown');
  const rest = unknowns === 0 ? '' : `, ${String(unknowns)} not known`;
  if (errors > 0)
    return ink.red(`${counted(errors, 'error')}, ${counted(warnings, 'warning')}${rest}`);
  if (warnings > 0) return ink.yellow(`No errors, ${counted(warnings, 'warning')}${rest}`);
  return ink.green(`No errors, no warnings${rest}`);
}
