/** A thread that plays fixed worlds on a changed library, until one breaks a promise (scripts/mutation/worlds.mjs). Tells of each world that it has ended. */
import { parentPort, workerData } from 'node:worker_threads';
import { newTally, tryWorld } from './find.js';
import { PROFILES } from './scenario.js';
import { ownTurn } from './world/settle.js';

/** What StrykerJS's switches know. */
interface Switches {
  readonly mutantCoverage?: { readonly static: Readonly<Record<string, number>> };
}

export type Outcome =
  | { readonly hasEnded: false }
  | {
      readonly hasEnded: true;
      /** What broke first. */
      readonly violation: string | undefined;
      /** The ids of the changes that the worlds have come by. */
      readonly covered: readonly string[];
    };

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

const violation = await firstViolation();
const { __stryker__: switches } = globalThis as { readonly __stryker__?: Switches };
const covered = Object.keys(switches?.mutantCoverage?.static ?? {});
tell({ hasEnded: true, violation, covered });
