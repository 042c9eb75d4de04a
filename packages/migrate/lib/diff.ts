import type { Edit } from './edits.js';

/** A run of lines that is replaced, and by what. Lines are counted from 1. */
interface Hunk {
  readonly oldStart: number;
  readonly oldLines: readonly string[];
  readonly newLines: readonly string[];
}

/** A unified diff without context lines, as `diff -U0` prints it. */
export function diffOf(path: string, text: string, edits: readonly Edit[]): string {
  let shift = 0;
  const hunks = hunksOf(text, edits).map((hunk) => {
    const { oldStart, oldLines, newLines } = hunk;
    const newStart = oldStart + shift;
    shift += newLines.length - oldLines.length;
    // An empty side names the line before it.
    const place = (start: number, { length }: readonly string[]): string =>
      `${String(length === 0 ? start - 1 : start)},${String(length)}`;
    return [
      `@@ -${place(oldStart, oldLines)} +${place(newStart, newLines)} @@`,
      ...oldLines.map((line) => `-${line}`),
      ...newLines.map((line) => `+${line}`),
    ].join('\n');
  });
  return `--- a/${path}\n+++ b/${path}\n${hunks.join('\n')}\n`;
}

function hunksOf(text: string, edits: readonly Edit[]): readonly Hunk[] {
  const groups: Edit[][] = [];
  let reached = -1;
  for (const edit of edits) {
    const group = groups.at(-1);
    if (group !== undefined && lineStart(text, edit.start) < reached) group.push(edit);
    else groups.push([edit]);
    reached = Math.max(reached, lineEnd(text, edit.end));
  }
  return groups.map((group) => hunkOf(text, group));
}

function hunkOf(text: string, edits: readonly Edit[]): Hunk {
  const [from, to] = [lineStart(text, edits[0]?.start ?? 0), lineEnd(text, edits.at(-1)?.end ?? 0)];
  let [changed, at] = ['', from];
  for (const edit of edits) {
    changed += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  const oldLines = linesOf(text.slice(from, to));
  const newLines = linesOf(changed + text.slice(at, to));
  const isSame = (index: number): boolean => oldLines.at(index) === newLines.at(index);
  const shorter = Math.min(oldLines.length, newLines.length);
  let head = 0;
  while (head < shorter && isSame(head)) head += 1;
  let tail = 0;
  while (tail < shorter - head && isSame(-1 - tail)) tail += 1;
  const before = text.slice(0, from).split('\n').length - 1;
  return {
    oldStart: before + head + 1,
    oldLines: oldLines.slice(head, oldLines.length - tail),
    newLines: newLines.slice(head, newLines.length - tail),
  };
}

/** Without the line feed behind the last one. */
const linesOf = (text: string): readonly string[] =>
  text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/);

const lineStart = (text: string, at: number): number => text.lastIndexOf('\n', at - 1) + 1;

/** Behind its line feed. */
const lineEnd = (text: string, at: number): number => {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end + 1;
};
