import { redact } from './redact.js';
import { shortened } from './shortened.js';

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
