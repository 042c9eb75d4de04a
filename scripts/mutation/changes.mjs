/** The changes that StrykerJS's instrumenter makes to files, all in one text of each file, where a switch says which of them is on. */
import { createHash } from 'node:crypto';
import { Instrumenter } from '@stryker-mutator/instrumenter';
import ts from 'typescript';

const quiet = {
  debug() {},
  info() {},
  warn() {},
  isDebugEnabled: () => false,
};

/** The variable that switches a change on, by its id, in every process that inherits it. */
export const SWITCH = '__STRYKER_ACTIVE_MUTANT__';

export const hashOf = (...texts) => createHash('sha256').update(texts.join('\0')).digest('hex');

/**
 * The files with the switches, and what the changes are. Those of code that is executed when its module loads are left out: the tests load each
 * module once.
 */
export async function changesOf(sources) {
  const files = sources.map(({ name, content }) => ({ name, content, mutate: true }));
  const options = { plugins: null, ignorers: [], excludedMutations: [] };
  const instrumented = await new Instrumenter(quiet).instrument(files, options);
  const texts = new Map(
    files.map(({ name, content }) => [
      name,
      {
        source: ts.createSourceFile(name, content, ts.ScriptTarget.Latest, true),
        hash: hashOf(content),
      },
    ]),
  );
  const changes = instrumented.mutants.flatMap((mutant) => {
    const { id, fileName: file, location, mutatorName, replacement } = mutant;
    const { source, hash } = texts.get(file);
    const [start, end] = [location.start, location.end].map(({ line, column }) =>
      source.getPositionOfLineAndCharacter(line, column),
    );
    if (!isCalled(source, start, end)) return [];
    const original = source.text.slice(start, end);
    const change = { id, file, line: location.start.line + 1, mutatorName, original, replacement };
    const rank = hashOf(file, mutatorName, original, replacement);
    return [{ ...change, rank, key: hashOf(hash, `${start}:${end}`, mutatorName, replacement) }];
  });
  return { files: instrumented.files, changes };
}

/** So many of each file, always the same ones: an edit elsewhere in the file takes few others. 0 takes all. */
export function sampleOf(changes, perFile) {
  const ranked = [...changes].sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0));
  const taken = new Map();
  const chosen = ranked.filter(({ file }) => {
    const count = (taken.get(file) ?? 0) + 1;
    taken.set(file, count);
    return perFile === 0 || count <= perFile;
  });
  return chosen.sort((a, b) => Number(a.id) - Number(b.id));
}

/** Whether this piece of code is executed when a function is called, or an instance is made. */
function isCalled(source, start, end) {
  const encloses = (node) => node.getStart() <= start && end <= node.end;
  const visit = (node) =>
    encloses(node) && (calledPartsOf(node).some(encloses) || ts.forEachChild(node, visit) === true);
  return ts.forEachChild(source, visit) === true;
}

function calledPartsOf(node) {
  if (ts.isFunctionLike(node))
    return [node.body, ...node.parameters.map(({ initializer }) => initializer)].filter(Boolean);
  if (!ts.isPropertyDeclaration(node)) return [];
  const isStatic = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.StaticKeyword);
  return isStatic || node.initializer === undefined ? [] : [node.initializer];
}
