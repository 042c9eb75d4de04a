/** A thread that explores one scope, deeper and deeper, until its time is over. Tells its parent of each depth that it has finished. */
import { parentPort, workerData } from 'node:worker_threads';
import { ownTurn } from '../world/settle.js';
import { Exploration, type Explored } from './explore.js';
import { SCOPES } from './scopes.js';

export interface ExploreSettings {
  readonly scope: string;
  /** To this depth and no further; default: as deep as the time lets it go. */
  readonly depth?: number;
  readonly seconds: number;
}

export interface Explorations extends Explored {
  readonly depth: number;
}

const DEEPER_BY = 2;

/** After so long other turns of the event loop come in between, in ms. */
const TURN_MS = 1_000;

const { scope: name, depth: only, seconds } = workerData as ExploreSettings;
const scope = SCOPES.find((each) => each.name === name);
if (scope === undefined) throw new Error(`There is no scope ${name}.`);
const until = performance.now() + seconds * 1_000;

async function explore(depth: number): Promise<Explored> {
  const exploration = new Exploration(scope!, depth);
  for (;;) {
    const explored = await ownTurn(() => exploration.goOn(TURN_MS));
    const isOver = only === undefined && performance.now() > until;
    if (explored.isComplete || explored.report !== undefined || isOver) return explored;
  }
}

for (let depth = only ?? scope.depth; ; depth += DEEPER_BY) {
  const explored = await explore(depth);
  parentPort?.postMessage({ ...explored, depth } satisfies Explorations);
  const isOver = only !== undefined || performance.now() > until;
  if (isOver || !explored.isComplete || !explored.isDeeper) break;
}
