/** @param {number} p from 0 to 1 */
export function quantile(values, p) {
  if (values.length === 0) return NaN;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.ceil(p * sorted.length) - 1)] ?? sorted[0];
}

export function median(values) {
  if (values.length === 0) return NaN;
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export const sum = (values) => values.reduce((total, value) => total + value, 0);

export const highest = (values) => values.reduce((most, value) => Math.max(most, value), -Infinity);

/** 1 when everybody got the same, 1/n when one got all. */
export function jain(counts) {
  const squares = sum(counts.map((count) => count * count));
  return squares === 0 ? NaN : sum(counts) ** 2 / (counts.length * squares);
}

/** The median of what the rounds say of each other: what disturbs the machine disturbs both. */
export const ratio = (ours, theirs) =>
  median(ours.map((value, round) => value / theirs[round]).filter(Number.isFinite));
