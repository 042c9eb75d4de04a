/** The interval contains the true median with at least this probability. */
const CONFIDENCE = 0.95;

/** The widest interval of a precise figure, to each side, as a part of the median. */
const PRECISION = 0.05;

export const atLeast = (limit) => ({
  text: `≥ ${limit}`,
  isMetBy: (value) => value >= limit,
});

export const atMost = (limit) => ({
  text: `≤ ${limit}`,
  isMetBy: (value) => value <= limit,
});

/**
 * What the rounds of a row show. The interval makes no assumption about the distribution: its ends are two of the values.
 *
 * The verdict, if there is a must:
 * - the whole interval is on one side of the must: `met` or `missed`
 * - else, a precise median decides
 * - else, `not certain`
 */
export function judge(values, must) {
  if (!values.every(Number.isFinite)) throw new Error(`No numbers: ${values.join(', ')}`);
  const median = medianOf(values);
  const [low, high] = intervalOf(values);
  const isPrecise = Math.max(high - median, median - low) <= PRECISION * Math.abs(median);
  const verdict = must && verdictOf({ median, low, high, isPrecise }, must);
  return { median, low, high, isPrecise, verdict };
}

function verdictOf({ median, low, high, isPrecise }, { isMetBy }) {
  if (isMetBy(low) !== isMetBy(high) && !isPrecise) return 'not certain';
  return isMetBy(median) ? 'met' : 'missed';
}

const sorted = (values) => Float64Array.from(values).sort();

export function medianOf(values) {
  const all = sorted(values);
  const middle = all.length >> 1;
  return all.length % 2 === 1 ? all[middle] : (all[middle - 1] + all[middle]) / 2;
}

/**
 * Each value is below the true median with the probability 1/2, as a coin shows heads. The interval leaves out the most values at each
 * end with which it still contains the true median in 95 of 100 cases. With fewer than six values, no interval does.
 */
function intervalOf(values) {
  const all = sorted(values);
  const count = all.length;
  let exactly = 0.5 ** count;
  let atMostSoMany = exactly;
  let left = 0;
  while (2 * atMostSoMany <= 1 - CONFIDENCE) {
    left += 1;
    exactly *= (count - left + 1) / left;
    atMostSoMany += exactly;
  }
  return left === 0 ? [-Infinity, Infinity] : [all[left - 1], all[count - left]];
}
