import { bare, holdfast } from '../libraries/index.mjs';
import { medianOf } from '../judge.mjs';

/** This build. */
export const OURS = new URL('../../..', import.meta.url).pathname;

const HEATS = 3;

/**
 * The measures of the variants that are wanted, and the name of the best peer: the one with the highest median of three heats.
 *
 * @param {object} bench
 * @param {readonly import('../libraries/index.mjs').Entrant[]} peers
 * @param {(entrant: import('../libraries/index.mjs').Entrant) => Promise<Record<string, number>>} measure
 */
export async function contest({ wanted, baseline }, peers, measure) {
  const entrants = { holdfast: holdfast(OURS), bare, baseline: baseline && holdfast(baseline) };
  const [variants, labels] = [{}, {}];
  for (const [name, entrant] of Object.entries(entrants))
    if (wanted.has(name)) variants[name] = () => measure(entrant);
  if (wanted.has('peer')) {
    const best = await bestOf(peers, measure);
    labels.peer = best.label;
    variants.peer = () => measure(best);
  }
  for (const warmUp of Object.values(variants)) await warmUp();
  return [variants, labels];
}

async function bestOf(peers, measure) {
  let [best, most] = [undefined, -Infinity];
  for (const peer of peers) {
    const heats = [];
    for (let heat = 0; heat < HEATS; heat += 1) heats.push((await measure(peer)).perSecond);
    const median = medianOf(heats);
    if (median > most) [best, most] = [peer, median];
  }
  return best;
}
