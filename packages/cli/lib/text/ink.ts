import { styleText } from 'node:util';
import type { Terminal } from '../terminal.js';

type Paint = (text: string) => string;

/** How the program sets texts off; nothing where colours are not wanted. */
export interface Ink {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
}

const plain: Paint = (text) => text;

const PLAIN: Ink = { bold: plain, dim: plain, red: plain, green: plain, yellow: plain };

const painted =
  (format: keyof Ink): Paint =>
  (text) =>
    // Whether there are colours is decided here, and not by what Node finds out about stdout.
    text === '' ? '' : styleText(format, text, { validateStream: false });

const COLOURED: Ink = {
  bold: painted('bold'),
  dim: painted('dim'),
  red: painted('red'),
  green: painted('green'),
  yellow: painted('yellow'),
};

/** `NO_COLOR` (https://no-color.org) wins over `FORCE_COLOR`; otherwise a terminal has colours, and a pipe none. */
export function inkFor({ env, isTty }: Pick<Terminal, 'env' | 'isTty'>): Ink {
  if (env.NO_COLOR !== undefined && env.NO_COLOR !== '') return PLAIN;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== '')
    return env.FORCE_COLOR === '0' ? PLAIN : COLOURED;
  return isTty && env.TERM !== 'dumb' ? COLOURED : PLAIN;
}
