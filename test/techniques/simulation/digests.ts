/** Plays the world of a seed, its only argument, in each profile, and prints what they came to. */
import { play } from './play.js';
import { scenarioOf } from './profiles.js';
import { PROFILES } from './scenario.js';
import { ownTurn } from './world/settle.js';

const seed = Number(process.argv[2]);

for (const profile of PROFILES) {
  const { digest } = await ownTurn(() => play(scenarioOf(profile, seed)));
  console.log(digest);
}
