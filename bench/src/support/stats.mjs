export const sum = (values) => values.reduce((total, value) => total + value, 0);

/** 1 when everybody got the same, 1/n when one got all. */
export function jain(counts) {
  const squares = sum(counts.map((count) => count * count));
  return sum(counts) ** 2 / (counts.length * squares);
}
