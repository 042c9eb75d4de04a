/** `%.14g`: how Lua writes a number. */
export function decimal(value: number): string {
  if (Number.isInteger(value) && value < 1e14 && value > -1e14) return whole(value);
  return general(value, 14);
}

/** `%.17g`: how Redis writes a number that a script hands to a command, and the scores of a sorted set. */
export function exact(value: number): string {
  return Number.isSafeInteger(value) ? whole(value) : general(value, 17);
}

/** `%.0f` */
export function rounded(value: number): string {
  if (Number.isSafeInteger(value)) return whole(value);
  if (!Number.isFinite(value)) return special(value);
  if (Number.isInteger(value)) return BigInt(value).toString();
  // Ties go to the even number, as C rounds.
  const below = Math.floor(value);
  const above = value - below > 0.5 || (value - below === 0.5 && below % 2 !== 0);
  const result = above ? below + 1 : below;
  return result === 0 && value < 0 ? '-0' : whole(result);
}

const whole = (value: number): string => (Object.is(value, -0) ? '-0' : String(value));

const special = (value: number): string => {
  // On x86 0/0 is the NaN with a sign, and no script of ours makes one.
  if (Number.isNaN(value)) return '-nan';
  return value > 0 ? 'inf' : '-inf';
};

function general(value: number, precision: number): string {
  if (!Number.isFinite(value)) return special(value);
  const [digits, exponent] = significant(Math.abs(value), precision);
  const sign = value < 0 ? '-' : '';
  if (exponent < -4 || exponent >= precision) {
    const mantissa = withoutZeros(`${digits[0] ?? ''}.${digits.slice(1)}`);
    const power = String(Math.abs(exponent)).padStart(2, '0');
    return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${power}`;
  }
  if (exponent < 0) return `${sign}${withoutZeros(`0.${'0'.repeat(-exponent - 1)}${digits}`)}`;
  return `${sign}${withoutZeros(`${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`)}`;
}

const withoutZeros = (text: string): string => text.replace(/\.?0*$/, '');

/** So many digits, rounded as C does, and the power of ten of the first. */
function significant(value: number, precision: number): readonly [digits: string, power: number] {
  const [mantissa = '', power] = value.toExponential(precision - 1).split('e');
  const digits = mantissa.replace('.', '');
  // JavaScript takes the larger of two that are as near; C the even one. More digits than a tie can have show which it was.
  const [full = ''] = value.toExponential(Math.min(100, precision + 40)).split('e');
  const dropped = full.replace('.', '').slice(precision);
  const isOdd = Number(digits[precision - 1]) % 2 === 1;
  if (!/^50*$/.test(dropped) || !isOdd) return [digits, Number(power)];
  // It was rounded up to an odd digit, so the one below is even.
  return [digits.slice(0, -1) + String(Number(digits[precision - 1]) - 1), Number(power)];
}

const ZERO = '0'.charCodeAt(0);

/** A text of nothing but digits, where that is exact: by far the most numbers are. */
export function digits(text: string): number | undefined {
  const { length } = text;
  if (length === 0 || length > 16) return undefined;
  let value = 0;
  for (let index = 0; index < length; index += 1) {
    const digit = text.charCodeAt(index) - ZERO;
    if (digit < 0 || digit > 9) return undefined;
    value = 10 * value + digit;
  }
  return value <= Number.MAX_SAFE_INTEGER ? value : undefined;
}

const DECIMAL = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/;
const HEXADECIMAL = /^([-+]?)(0[xX][0-9a-fA-F]+)$/;
const INFINITE = /^([-+]?)inf(?:inity)?$/i;

/** What `strtod` makes of all of a text, which is how Lua and Redis read numbers; spaces around it are for Lua only. */
export function parseNumber(text: string): number | undefined {
  const simple = digits(text);
  if (simple !== undefined) return simple;
  if (DECIMAL.test(text)) return Number(text);
  const hexadecimal = HEXADECIMAL.exec(text);
  if (hexadecimal) return (hexadecimal[1] === '-' ? -1 : 1) * Number(hexadecimal[2]);
  const infinite = INFINITE.exec(text);
  if (infinite) return infinite[1] === '-' ? -Infinity : Infinity;
  return /^[-+]?nan$/i.test(text) ? NaN : undefined;
}

const SPACE = /^[ \t-\r]+|[ \t-\r]+$/g;

export const parseLuaNumber = (text: string): number | undefined =>
  parseNumber(text) ?? parseNumber(text.replace(SPACE, ''));
