/** A thread that plays worlds from one seed on until the first one that breaks a promise, and tells its parent how far it came. */
import { parentPort, workerData } from 'node:worker_threads';
import { newTally, tryWorld } from '../find.js';
import type { ProfileName } from '../scenario.js';
import { ownTurn } from '../world/settle.js';

export interface Hunt {
  readonly profile: ProfileName;
  readonly seed: number;
  /** Of processor time, so that it makes no difference what else the machine does. */
  readonly seconds: number;
  readonly worlds: number;
}

export interface Catch {
  readonly worlds: number;
  readonly seconds: number;
  readonly found?: { readonly seed: number; readonly violation: string };
}

const { profile, seed, seconds, worlds } = workerData as Hunt;
/** Now and then it shows that a world has ended. */
const SHOWS_EVERY_MS = 1_000;

const before = process.cpuUsage();
const elapsed = (): number => {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
};
let shownAt = performance.now();
const tally = newTally();
let found: Catch['found'];

while (found === undefined && tally.worlds < worlds && elapsed() < seconds) {
  const next = seed + tally.worlds;
  const finding = await ownTurn(() => tryWorld({ profile, seed: next }, tally));
  if (performance.now() - shownAt > SHOWS_EVERY_MS) {
    shownAt = performance.now();
    parentPort?.postMessage('goes on');
  }
  if (finding !== undefined) found = { seed: next, violation: finding.violations[0]! };
}
parentPort?.postMessage({
  worlds: tally.worlds,
  seconds: elapsed(),
  ...(found && { found }),
} satisfies Catch);
