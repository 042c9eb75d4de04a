/** A thread that plays fixed worlds on a library with one change in it, until one breaks a promise (scripts/mutation/worlds.mjs). */
import { parentPort, workerData } from 'node:worker_threads';
import { newTally, tryWorld } from './find.js';
import { PROFILES } from './scenario.js';
import { ownTurn } from './world/settle.js';

/** What StrykerJS's switches know. */
interface Switches {
  readonly mutantCoverage?: { readonly static: Readonly<Record<string, number>> };
}

export interface Performance {
  /** What broke first. */
  readonly violation?: string;
  /** The ids of the changes that the worlds have come by. */
  readonly covered: readonly string[];
}

const { seeds } = workerData as { readonly seeds: number };
const tally = newTally();
let violation: string | undefined;

for (let seed = 1; seed <= seeds && violation === undefined; seed += 1) {
  for (const profile of PROFILES) {
    const found = await ownTurn(() => tryWorld({ profile, seed }, tally));
    if (found === undefined) continue;
    violation = `${profile} ${String(seed)}: ${found.violations[0] ?? ''}`;
    break;
  }
}
const { __stryker__: switches } = globalThis as { readonly __stryker__?: Switches };
parentPort?.postMessage({
  ...(violation !== undefined && { violation }),
  covered: Object.keys(switches?.mutantCoverage?.static ?? {}),
} satisfies Performance);
