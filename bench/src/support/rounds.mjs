/**
 * Measures each of several, one after the other, again and again, beginning with another one each time, and forwards and backwards in turn:
 * what else the machine does, and what was left behind by the one before, meets all of them.
 *
 * @template One, Result
 * @param {readonly One[]} all
 * @param {number} rounds
 * @param {(one: One, round: number) => Promise<Result>} measure
 * @returns {Promise<Map<One, Result[]>>}
 */
export async function inRounds(all, rounds, measure) {
  const results = new Map(all.map((one) => [one, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (let step = 0; step < all.length; step += 1) {
      const one = all.at((round % 2 === 0 ? step + round : round - step) % all.length);
      results.get(one).push(await measure(one, round));
    }
  }
  return results;
}
