import { UnsupportedLua } from './values.js';

/** A pattern of Lua as a regular expression over bytes. */
export interface Pattern {
  /** Begins at its `lastIndex`, and only there if the pattern has an anchor. */
  readonly regex: RegExp;
  readonly captures: number;
}

/** Of the C locale, as in Redis. */
const CLASSES: Readonly<Record<string, string>> = {
  a: 'A-Za-z',
  c: '\\x00-\\x1f\\x7f',
  d: '0-9',
  l: 'a-z',
  p: '!-\\/:-@\\[-`{-~',
  s: ' \\t-\\r',
  u: 'A-Z',
  w: '0-9A-Za-z',
  x: '0-9A-Fa-f',
};

const known = new Map<string, Pattern>();

/** @throws UnsupportedLua for what no regular expression says, or is not needed here */
export function patternOf(text: string): Pattern {
  let pattern = known.get(text);
  if (pattern === undefined) {
    pattern = translate(text);
    known.set(text, pattern);
  }
  return pattern;
}

function translate(text: string): Pattern {
  const isAnchored = text.startsWith('^');
  let source = '';
  let captures = 0;
  let index = isAnchored ? 1 : 0;
  while (index < text.length) {
    const character = text[index] as string;
    if (character === '(') {
      if (text[index + 1] === ')') throw unsupported(text, 'a position capture');
      captures += 1;
      source += '(';
      index += 1;
    } else if (character === ')') {
      source += ')';
      index += 1;
    } else if (character === '$' && index === text.length - 1) {
      source += '$';
      index += 1;
    } else {
      const [single, next] = singleAt(text, index);
      const suffix = text[next] ?? '';
      const isRepeated = suffix !== '' && '*+-?'.includes(suffix);
      source += single + (suffix === '-' ? '*?' : isRepeated ? suffix : '');
      index = isRepeated ? next + 1 : next;
    }
  }
  try {
    return { regex: new RegExp(source, isAnchored ? 'y' : 'g'), captures };
  } catch {
    throw unsupported(text, 'a malformed pattern');
  }
}

/** One class of characters, and where it ends. */
function singleAt(text: string, index: number): readonly [source: string, next: number] {
  const character = text[index] as string;
  if (character === '.') return ['[^]', index + 1];
  if (character === '%') return [`[${escapeAt(text, index + 1)}]`, index + 2];
  if (character === '[') return setAt(text, index);
  return [quoted(character), index + 1];
}

function setAt(text: string, start: number): readonly [source: string, next: number] {
  let index = start + 1;
  let source = '[';
  if (text[index] === '^') {
    source += '^';
    index += 1;
  }
  const first = index;
  while (text[index] !== ']' || index === first) {
    const character = text[index];
    if (character === undefined) throw unsupported(text, 'a set without an end');
    if (character === '%') {
      source += escapeAt(text, index + 1);
      index += 2;
    } else {
      const isRange = character === '-' && index !== first && text[index + 1] !== ']';
      source += isRange ? '-' : quoted(character);
      index += 1;
    }
  }
  return [`${source}]`, index + 1];
}

/** What may stand in a set for a character behind `%`. */
function escapeAt(text: string, index: number): string {
  const character = text[index];
  if (character === undefined) throw unsupported(text, '"%" at its end');
  if (/[0-9bfz]/.test(character)) throw unsupported(text, `%${character}`);
  if (!/[a-zA-Z]/.test(character)) return quoted(character);
  const members = CLASSES[character.toLowerCase()];
  if (members === undefined) throw unsupported(text, `%${character}`);
  return character === character.toLowerCase() ? members : complement(members);
}

/** In a set there may be others beside it, so what is not in a class is listed. */
function complement(members: string): string {
  const inside = new RegExp(`[${members}]`);
  let listed = '';
  for (let code = 0; code < 256; code += 1) {
    const character = String.fromCharCode(code);
    if (!inside.test(character)) listed += `\\x${code.toString(16).padStart(2, '0')}`;
  }
  return listed;
}

const quoted = (character: string): string =>
  /[A-Za-z0-9]/.test(character)
    ? character
    : `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;

const unsupported = (text: string, what: string): UnsupportedLua =>
  new UnsupportedLua(`the pattern ${JSON.stringify(text)}: ${what}`);
