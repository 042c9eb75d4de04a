/** A thread that plays worlds: every so-many-th seed from the first one on. Tells its parent now and then how far it is. */
import { parentPort, workerData } from 'node:worker_threads';
import { newTally, reportOf, tryWorld, type Report, type Tally } from './find.js';
import type { SizeName } from './profiles/size.js';
import type { ProfileName } from './scenario.js';
import { ownTurn } from './world/settle.js';

export interface WorkerSettings {
  readonly profiles: readonly ProfileName[];
  readonly size: SizeName;
  readonly seed: number;
  readonly stride: number;
  /** Default: until its parent ends it. */
  readonly worlds: number;
  readonly minutes: number;
}

export interface Progress extends Omit<Tally, 'paths'> {
  readonly paths: readonly string[];
  readonly report?: Report;
  readonly failed?: { readonly profile: ProfileName; readonly seed: number };
}

const TELLS_EVERY_MS = 1_000;

const { profiles, size, seed, stride, worlds, minutes } = workerData as WorkerSettings;
const until = performance.now() + minutes * 60_000;
const known = new Set<string>();
let tally = newTally();
let toldAt = performance.now();

function tell(more: Pick<Progress, 'report' | 'failed'> = {}): void {
  const fresh = [...tally.paths].filter((path) => !known.has(path));
  for (const path of fresh) known.add(path);
  parentPort?.postMessage({ ...tally, paths: fresh, ...more } satisfies Progress);
  tally = newTally();
  toldAt = performance.now();
}

for (let index = 0; index < worlds && performance.now() < until; index += 1) {
  const number = seed + index * stride;
  for (const profile of profiles) {
    const found = await ownTurn(() => tryWorld({ profile, seed: number, size }, tally));
    if (found === undefined) continue;
    const report = await ownTurn(() => reportOf(found));
    tell({ report, failed: { profile, seed: number } });
  }
  if (performance.now() - toldAt > TELLS_EVERY_MS) tell();
}
tell();
