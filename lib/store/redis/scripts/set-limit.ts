import type { SetLimitOutcome } from '../../lock-store.js';
import { callOn, lineArgument, luaText, orEmpty, script, type Verb } from './script.js';

interface SetLimitCall {
  /** The only key. */
  readonly keys: readonly string[];
  /** `undefined`: none is set any more. */
  readonly limit: number | undefined;
}

/** Sets the limit that counts for all holders of a key by a limit, and admits the callers in line that now fit. */
export const setLimitScript: Verb<SetLimitCall, SetLimitOutcome> = {
  encode({ keys, limit }, server) {
    const encoded = callOn(keys, server);
    encoded.push(orEmpty(limit), lineArgument(server.lineMode));
    return encoded;
  },
  decode: (reply, _request, _server, shortfall) =>
    reply === 1 ? (shortfall ?? { status: 'set' }) : undefined,
  ...script(luaText('set-limit'), 'set-limit'),
};
