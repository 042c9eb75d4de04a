import { readFileSync } from 'node:fs';

const textOf = (file: string): string => readFileSync(new URL(file, import.meta.url), 'utf8');

const BLOCK = /^( *)\/\/ recipe\n([^]*?)(?=^\1\/\/ (?:recipe|end)$|$(?![^]))/gm;

/** The recipes of a file: what follows a line `// recipe`, until the next one, a line `// end`, or the end. */
const recipesIn = (file: string): readonly string[] =>
  Array.from(textOf(file).matchAll(BLOCK), ([, indent = '', code = '']) =>
    code.replaceAll(new RegExp(`^${indent}`, 'gm'), '').trim(),
  );

/** The code that docs/recipes.md shows, without its imports. */
const blocksOfPage = (): ReadonlySet<string> =>
  new Set(
    Array.from(
      textOf('../../../docs/recipes.md').matchAll(/^```ts\n(?:import .*\n)*([^]*?)^```$/gm),
      ([, code = '']) => code.trim(),
    ),
  );

/** The recipes of a file of this folder, by whether docs/recipes.md shows exactly that code. */
export function recipesOf(file: string): {
  readonly shown: number;
  readonly missing: readonly string[];
} {
  const blocks = blocksOfPage();
  const recipes = recipesIn(file);
  const missing = recipes.filter((code) => !blocks.has(code));
  return { shown: recipes.length - missing.length, missing };
}
