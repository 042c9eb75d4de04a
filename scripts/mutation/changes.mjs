/** The changes that StrykerJS makes to a folder of lib/, all in one text of each file, where a switch says which of them is on. */
import { readFileSync } from 'node:fs';
import { Instrumenter } from '@stryker-mutator/instrumenter';
import { passagesOf } from './passages.mjs';

const quiet = {
  debug() {},
  info() {},
  warn() {},
  isDebugEnabled: () => false,
};

/** The variable that switches a change on, by its id, in every process that inherits it. */
export const SWITCH = '__STRYKER_ACTIVE_MUTANT__';

/** The files with the switches, and what the changes are. */
export async function changesOf(folder, sample) {
  const files = passagesOf(folder, sample).map(({ file, passages }) => ({
    name: file,
    content: readFileSync(file, 'utf8'),
    mutate: passages.map(({ first, last }) => ({
      start: { line: first - 1, column: 0 },
      end: { line: last - 1, column: Number.MAX_SAFE_INTEGER },
    })),
  }));
  const options = { plugins: null, ignorers: [], excludedMutations: [] };
  const instrumented = await new Instrumenter(quiet).instrument(files, options);
  const changes = instrumented.mutants.map((mutant) => {
    const { id, fileName, location, mutatorName, replacement } = mutant;
    const source = files.find(({ name }) => name === fileName).content.split('\n');
    return {
      ...{ id, file: fileName, mutatorName, replacement, original: textAt(source, location) },
      location: { start: fromOne(location.start), end: fromOne(location.end) },
    };
  });
  return { files: instrumented.files, changes };
}

/** As StrykerJS reports what it counts from 0. */
const fromOne = ({ line, column }) => ({ line: line + 1, column: column + 1 });

function textAt(lines, { start, end }) {
  if (start.line === end.line) return lines[start.line].slice(start.column, end.column);
  const inner = lines.slice(start.line + 1, end.line);
  return [
    lines[start.line].slice(start.column),
    ...inner,
    lines[end.line].slice(0, end.column),
  ].join('\n');
}
