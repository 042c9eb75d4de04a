import type { LineCall } from '../../lock-store.js';

/** What scripts send to those in line (`notify` in `scripts/places.ts`): `<tail of the token, or id> <ms> <main key>`. */
const CALL = /^(\S+) (\d+) (.*)$/s;

/** A message from a script, with the name of the key it is about; `undefined` for what is none. */
export function lineCallOf(
  message: string,
): { readonly name: string; readonly call: LineCall } | undefined {
  const [, to, inMs, name] = CALL.exec(message) ?? [];
  if (to === undefined || name === undefined) return undefined;
  return { name, call: { to, inMs: Number(inMs) } };
}
