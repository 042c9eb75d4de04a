import type { WriteOutcome, WriteRequest } from '../../lock-store.js';
import { callOn, isCount, luaText, script, type Verb } from './script.js';

interface GuardedCall extends WriteRequest {
  /** What the commands read and write, as far as that is known. */
  readonly dataKeys: readonly string[];
}

/** Runs commands of the application where the lease holds all of its keys, and none otherwise. */
export const guardedScript: Verb<GuardedCall, WriteOutcome> = {
  encode({ keys, token, dataKeys, commands }, server) {
    const encoded = callOn(keys, server);
    encoded[0] += dataKeys.length;
    encoded.push(...dataKeys, token, keys.length);
    for (const command of commands) encoded.push(command.length, ...command);
    return encoded;
  },
  decode(reply, _request, _server, shortfall) {
    if (!Array.isArray(reply)) return undefined;
    const [result, first, second] = reply as unknown[];
    if (result === 1 && Array.isArray(first))
      return shortfall ?? { status: 'written', replies: first };
    if (result === 2 && isCount(first) && typeof second === 'string')
      return { status: 'failed', index: first, message: second };
    if (result === 0) return { status: 'lost', reason: 'released-elsewhere' };
    return result === -1 ? { status: 'lost', reason: 'stolen' } : undefined;
  },
  ...script(luaText('guarded'), 'guarded'),
};
