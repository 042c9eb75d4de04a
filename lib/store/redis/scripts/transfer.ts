import type { TransferOutcome, TransferRequest } from '../../lock-store.js';
import { quarantinedFor, type Quarantined } from './quarantine.js';
import {
  callOn,
  isCount,
  lineArgument,
  luaText,
  orEmpty,
  script,
  trimmed,
  type Verb,
} from './script.js';

/**
 * Gives a lease another owner token, with a TTL of its own. All keys are read before one is changed. Later requests of
 * the previous holder find another token, so they renew nothing and release nothing.
 */
export const transferScript: Verb<TransferRequest, TransferOutcome | Quarantined> = {
  encode({ keys, token, to, ttlMs, lastToken, grants }, server) {
    const guard = grants === true ? server : undefined;
    const encoded = callOn(keys, server, guard?.epoch);
    encoded.push(
      token,
      to,
      ttlMs,
      server.options.fenceKeepMs,
      lastToken,
      lineArgument(server.lineMode),
      orEmpty(guard?.options.restartGuard?.maxTtlMs),
    );
    return trimmed(encoded);
  },
  decode(reply, { lastToken }, _server, shortfall) {
    if (!Array.isArray(reply)) return undefined;
    const [result, text] = reply as unknown[];
    if (result === 1) return shortfall ?? { status: 'transferred' };
    const detail = Number(text);
    if (!isCount(detail)) return undefined;
    if (result === -2) return quarantinedFor(detail);
    if (result === 0) return { status: 'lost', reason: 'gone' };
    // Every grant raises the fence.
    const reason = detail > lastToken ? 'stolen' : 'attached';
    return result === -1 ? { status: 'lost', reason } : undefined;
  },
  ...script(luaText('transfer'), 'transfer'),
};
