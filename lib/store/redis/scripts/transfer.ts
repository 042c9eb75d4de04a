import type { TransferOutcome, TransferRequest } from '../../lock-store.js';
import { callOn, isCount, lineArgument, luaText, script, trimmed, type Verb } from './script.js';

/**
 * Gives a lease another owner token, with a TTL of its own. All keys are read before one is changed. Later requests of
 * the previous holder find another token, so they renew nothing and release nothing.
 */
export const transferScript: Verb<TransferRequest, TransferOutcome> = {
  encode({ keys, token, to, ttlMs, lastToken }, server) {
    const encoded = callOn(keys, server);
    encoded.push(
      token,
      to,
      ttlMs,
      server.options.fenceKeepMs,
      lastToken,
      lineArgument(server.lineMode),
    );
    return trimmed(encoded);
  },
  decode(reply, { lastToken }, _server, shortfall) {
    if (!Array.isArray(reply)) return undefined;
    const [result, text] = reply as unknown[];
    if (result === 1) return shortfall ?? { status: 'transferred' };
    const fence = Number(text);
    if (!isCount(fence)) return undefined;
    if (result === 0) return { status: 'lost', reason: 'gone' };
    // Every grant raises the fence.
    const reason = fence > lastToken ? 'stolen' : 'attached';
    return result === -1 ? { status: 'lost', reason } : undefined;
  },
  ...script(luaText('transfer'), 'transfer'),
};
