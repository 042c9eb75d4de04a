import type { ScriptCall } from '../scripts/script.js';
import { isReply, replyError } from './reply-errors.js';

/** What Redis and Lua say of a value that no script of ours wrote. At which key it is, they do not say. */
const IS_FOREIGN =
  /WRONGTYPE|attempt to|bad argument|not a valid (float|integer)|not an integer|invalid expire|arguments must be strings/;

/** At most how many keys of a call are named. */
const MOST_NAMED = 10;

/** The error of a script. If other software has written to one of its keys, it names the keys to look at. */
export function withForeignKeys(message: string, keys: readonly (string | number)[]): string {
  if (!IS_FOREIGN.test(message)) return message;
  const named = keys.slice(0, MOST_NAMED).map((key) => `"${key}"`);
  const more = keys.length > MOST_NAMED ? ` and ${String(keys.length - MOST_NAMED)} more` : '';
  return `one of the keys ${named.join(', ')}${more} holds what Holdfast did not write: delete it (${message})`;
}

/** The error of a call, with the names of its keys where they are to be looked at. */
export function errorOfCall(error: unknown, [keyCount, ...keysAndArguments]: ScriptCall): Error {
  if (!isReply(error)) return error instanceof Error ? error : new Error(String(error));
  const message = withForeignKeys(error.message, keysAndArguments.slice(0, keyCount));
  return message === error.message ? error : replyError(message);
}
