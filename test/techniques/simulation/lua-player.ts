/** A thread that plays fixed worlds on changed scripts, until one breaks a promise (scripts/mutation/lua-copy.mjs). Tells of each world that it has ended. */
import { parentPort, workerData } from 'node:worker_threads';
import { newTally, tryWorld } from './find.js';
import { PROFILES } from './scenario.js';
import { ownTurn } from './world/settle.js';

export interface Outcome {
  readonly hasEnded: boolean;
  /** What broke. */
  readonly violation?: string | undefined;
}

const { from, to } = workerData as { readonly from: number; readonly to: number };
const tell = (outcome: Outcome): void => parentPort?.postMessage(outcome);
const tally = newTally();

async function firstViolation(): Promise<string | undefined> {
  for (let seed = from; seed <= to; seed += 1) {
    for (const profile of PROFILES) {
      const found = await ownTurn(() => tryWorld({ profile, seed }, tally));
      if (found !== undefined) return `${profile} ${seed}: ${found.violations[0] ?? ''}`;
      tell({ hasEnded: false });
    }
  }
  return undefined;
}

tell({ hasEnded: true, violation: await firstViolation() });
