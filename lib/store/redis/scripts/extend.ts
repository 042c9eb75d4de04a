import type { ExtendOutcome, LeaseRenewal, Unavailable } from '../../lock-store.js';
import {
  callOn,
  isCount,
  lineArgument,
  luaText,
  orEmpty,
  putsBack,
  script,
  type Verb,
} from './script.js';

/** One key of one lease. */
export interface KeyRenewal extends Omit<LeaseRenewal, 'keys' | 'validForMs'> {
  /** The server's time until which the holder is sure of it. */
  readonly sureUntilUs: number;
  /** The fence that was found where the key was gone: it may be put back while that is unchanged. */
  readonly expectedFence: number | undefined;
}

interface ExtendCall {
  readonly keys: readonly string[];
  /** The renewals of the keys, in their order. */
  readonly renewals: readonly KeyRenewal[];
}

/** What became of one key of a renewal. */
export type KeyAnswer = ExtendOutcome & {
  /** The fence that a key that is gone could be put back beside. */
  readonly fence?: number;
};

interface ExtendReply {
  readonly clockUs: number;
  /** In the order of the keys. */
  readonly answers: readonly KeyReply[];
}

type KeyReply = KeyAnswer | { readonly status: 'failed'; readonly message: string };

const EXTENDED: KeyAnswer = { status: 'extended' };
const STOLEN: KeyAnswer = { status: 'lost', reason: 'stolen' };

function decodeKey(reply: unknown, shortfall?: Unavailable): KeyReply | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [result, detail] = reply as unknown[];
  if (result === 1) return shortfall ?? EXTENDED;
  if (result === -1) return STOLEN;
  const fence = Number(detail);
  if (result === 0 && isCount(fence))
    return { status: 'lost', reason: 'released-elsewhere', fence };
  return result === -2 && typeof detail === 'string'
    ? { status: 'failed', message: detail }
    : undefined;
}

/**
 * Renews keys of many leases. It puts back a key that is gone in two cases:
 * - The server is in quarantine. It has forgotten leases and granted none since, so it trusts the holder, unless the
 *   lease was released. If two leases claim the key, the one with the larger fencing token was granted later. A
 *   lock of other software is left alone: it has no fence.
 * - The caller knows from a majority that the lease stands, and the fence was not touched since the key was found gone.
 *   Every grant changes a fence that exists, and so does the release of a lease that is put back.
 *
 * It never puts a key back after the holder's own deadline. Otherwise the key goes to the next in line.
 *
 * Each key is renewed on its own, so that one of a wrong type does not stop the others. PEXPIRE works when memory is
 * full, SET does not.
 */
export const extendScript: Verb<ExtendCall, ExtendReply> = {
  encode({ keys, renewals }, server) {
    const { fenceKeepMs, restartGuard } = server.options;
    const encoded = callOn(keys, server, server.epoch);
    const maxTtlMs = orEmpty(restartGuard?.maxTtlMs);
    encoded.push(fenceKeepMs, maxTtlMs, lineArgument(server.lineMode));
    for (const { token, ttlMs, fencingToken, sureUntilUs, expectedFence } of renewals) {
      encoded.push(token, ttlMs, fencingToken);
      if (putsBack(server)) encoded.push(sureUntilUs, orEmpty(expectedFence));
    }
    return encoded;
  },
  decode(reply, { keys }, _server, shortfall) {
    if (!Array.isArray(reply)) return undefined;
    const clockUs: unknown = reply[0];
    if (!isCount(clockUs) || reply.length !== 1 + keys.length) return undefined;
    const answers: KeyReply[] = [];
    for (let at = 1; at < reply.length; at += 1) {
      const answer = decodeKey(reply[at], shortfall);
      if (answer === undefined) return undefined;
      answers.push(answer);
    }
    return { clockUs, answers };
  },
  ...script(luaText('extend'), 'extend'),
};
