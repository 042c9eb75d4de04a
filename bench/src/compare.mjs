import { judge } from './judge.mjs';

/** Fewer rounds may be precise by luck. */
const LEAST_ROUNDS = 9;

/**
 * @typedef {object} Row
 * @property {string} name
 * @property {string} figure `<variant>.<figure>`, such as `holdfast.perSecond`
 * @property {string} [against] the same: the value of a round is the ratio. Without it, the value is the figure itself
 * @property {{ text: string, isMetBy: (value: number) => boolean }} [must]
 *
 * @typedef {() => Promise<Record<string, number>>} Measure one round of one variant
 */

/** The variants that the rows compare. */
export const variantsOf = (rows) =>
  new Set(
    rows.flatMap(({ figure, against = figure }) => [figure, against].map((one) => partsOf(one)[0])),
  );

const partsOf = (path) => path.split('.');

/**
 * Measures the variants one after the other, round by round: other load of the machine affects all of them. Every second round has the
 * reverse order. The rounds end early when each row is precise.
 *
 * @param {readonly Row[]} rows
 * @param {Record<string, Measure>} variants
 * @param {number} mostRounds
 */
export async function compare(rows, variants, mostRounds) {
  const names = Object.keys(variants);
  const rounds = [];
  let judged = [];
  const isEnough = () =>
    rounds.length >= LEAST_ROUNDS && judged.every(({ isPrecise }) => isPrecise);
  while (rounds.length < mostRounds && !isEnough()) {
    const round = {};
    for (const name of rounds.length % 2 === 0 ? names : names.toReversed())
      round[name] = await variants[name]();
    rounds.push(round);
    judged = rows.map((row) => judgeRow(row, rounds));
  }
  return rows.map((row, at) => ({ ...row, ...judged[at], rounds: rounds.length }));
}

function judgeRow({ name, figure, against, must }, rounds) {
  const read = (round, path) => {
    const [variant, one] = partsOf(path);
    return round[variant][one];
  };
  const values = rounds.map((round) =>
    against === undefined ? read(round, figure) : read(round, figure) / read(round, against),
  );
  try {
    return judge(values, must);
  } catch (error) {
    throw new Error(`${name}: ${error.message}`, { cause: error });
  }
}
