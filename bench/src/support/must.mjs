import { number } from './table.mjs';

/** What has to come out. */
export const atLeast = (text, value, limit) => must(text, value, '≥', limit, value >= limit);
export const atMost = (text, value, limit) => must(text, value, '≤', limit, value <= limit);

function must(text, value, sign, limit, isMet) {
  return { text, value, sign, limit, isMet };
}

export function sentence({ text, value, sign, limit, isMet }) {
  const digits = limit >= 20 ? 0 : 2;
  return `must: ${text} ${sign} ${limit}: ${number(value, digits)} ${isMet ? '✓' : '✗ MISSED'}`;
}
