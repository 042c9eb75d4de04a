import { digits, parseNumber } from '../../lua/numbers.js';
import { UnknownCommand } from '../replies.js';

const INTEGER = /^(?:0|-?[1-9]\d*)$/;

/** As strict as Redis: no plus, no spaces, no zeros before it. */
export function integerOf(text: string): number | undefined {
  const simple = digits(text);
  if (simple !== undefined && (!text.startsWith('0') || text === '0')) return simple;
  if (!INTEGER.test(text)) return undefined;
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  if (BigInt.asIntN(64, BigInt(text)) !== BigInt(text)) return undefined;
  throw new UnknownCommand(`the model counts no further than 2^53, not to ${text}`);
}

export function scoreOf(text: string): number | undefined {
  const score = parseNumber(text);
  return Number.isNaN(score) ? undefined : score;
}

/** One end of a range of scores. */
export interface Bound {
  readonly score: number;
  readonly itself: 'with' | 'without';
}

/** Less strict than scores are: without a number it is 0, and there may be spaces before it. */
export function boundOf(text: string): Bound | undefined {
  const isOpen = text.startsWith('(');
  const number = isOpen ? text.slice(1) : text;
  const score = number === '' ? 0 : scoreOf(number.replace(/^[ \t-\r]+/, ''));
  return score === undefined ? undefined : { score, itself: isOpen ? 'without' : 'with' };
}

/** A text of the model against a pattern like that of KEYS. */
export function globOf(pattern: string): RegExp {
  if (/[[\]\\]/.test(pattern)) throw new UnknownCommand(`the pattern ${JSON.stringify(pattern)}`);
  const source = pattern
    .replace(/[.+^${}()|]/g, '\\$&')
    .replaceAll('*', '[^]*')
    .replaceAll('?', '[^]');
  return new RegExp(`^${source}$`);
}
