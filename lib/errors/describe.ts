import { redact } from './redact.js';

/**
 * Describes a value of an option, for messages. Never a password, nor the contents of an object: they may hold secrets.
 */
export function describe(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(shortened(redact(value.replace(CREDENTIALS, '$1***@'))));
  return Object(value) === value ? `a value of type ${typeof value}` : String(value);
}

/** Here also without a scheme: the text was refused, so it may be any mistyped URL. */
const CREDENTIALS = /^(\w+:\/\/)?.*@/s;

/** How much of a repeated text a message shows. */
const LONGEST_SHOWN = 200;

/** A text as a message repeats it, without the rest of a very long one. */
export const shortened = (text: string, longest = LONGEST_SHOWN): string =>
  text.length > longest ? `${text.slice(0, longest - 1)}…` : text;

/** The message of an error. Anything can be thrown, including values without a text. */
export function textOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return 'an error without text';
  }
}
