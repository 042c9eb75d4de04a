/**
 * How often the library was given a client of the package that HOLDFAST_CLIENT names ("made"), and how often what the test gave ("given").
 * In a file, because child processes of a spec do so, too.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

export function noteUse(use) {
  const { HOLDFAST_CLIENT_USES: file } = process.env;
  if (file !== undefined) appendFileSync(file, `${use} `);
}

export function usesIn(file) {
  const uses = { made: 0, given: 0 };
  if (!existsSync(file)) return uses;
  for (const use of readFileSync(file, 'utf8').trim().split(' ')) uses[use] += 1;
  return uses;
}
