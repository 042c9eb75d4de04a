import type { Unavailable } from '../../lock-store.js';
import { refusal, type Vote } from './acquire.js';
import {
  isCount,
  isFromClock,
  isPttl,
  luaText,
  PROPOSAL_BOUND_US,
  script,
  tokenOf,
  type Script,
  type ServerFacts,
} from './script.js';

/** What one request gives to a call that it may share with others. */
export interface Share {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/**
 * A script that does the same for each of its keys. Many requests can share one call of it (group commit). The reply is the
 * answer to the only request, or a list of them. A value of another type is not plain, and no error: an error after the
 * first write would hide from the other requests what became of them.
 */
export interface SharedVerb<Request, Answer> extends Script {
  /** Whether a request waits while the connection is down. Default: it fails. */
  readonly whileDown?: 'waits';
  encode(request: Request, server: ServerFacts): Share;
  /** Never throws. `undefined`: it is not plain, or the script cannot have sent this. The whole script has to be asked. */
  decode(reply: unknown, request: Request): Answer | undefined;
}

export interface TakeCall {
  readonly key: string;
  readonly token: string;
  readonly ttlMs: number;
  /** A fencing token proposed by the client, so that several servers agree; 0 for none. */
  readonly proposal: number;
}

/** What `take` says to a request for a key. */
type TakeAnswer = Exclude<Vote, Unavailable> & { readonly clockUs?: number };

/**
 * Takes a key if that is plain: no other caller waits or shares, the key is free, and its fence is behind the token to be granted.
 * Everything is read before anything is written. Where it is not plain, and after any error, the whole script is asked (`acquire.ts`).
 *
 * A key that another token holds is refused as by the whole script. The request's own token at the key is not plain: the
 * request was sent twice. A marker is not, because its holders may be gone.
 *
 * The fencing token is the clock, or the proposal if that is ahead of the clock. It must not be ahead by more than a second.
 */
export const take: SharedVerb<TakeCall, TakeAnswer> = {
  encode: ({ key, token, ttlMs, proposal }, { names, options }) => {
    const { main, fence, queue, holders } = names(key);
    const aheadMs = proposal === 0 ? 0 : PROPOSAL_BOUND_US / 1_000;
    return {
      keys: [main, fence, queue, holders],
      args: [token, ttlMs, ttlMs + options.fenceKeepMs + aheadMs, proposal === 0 ? '' : proposal],
    };
  },
  decode(reply, { key, proposal }) {
    if (Array.isArray(reply)) {
      const [pttl, holder] = reply as unknown[];
      if (!isPttl(pttl) || typeof holder !== 'string') return undefined;
      return { status: 'held', key, ...refusal(holder, pttl) };
    }
    const clockUs = typeof reply === 'string' ? Number(reply) : reply;
    if (!isCount(clockUs) || clockUs === 0) return undefined;
    const fencingToken = tokenOf(clockUs, proposal);
    return {
      status: 'granted',
      clockUs,
      fencingToken,
      isFromClock: isFromClock(fencingToken, clockUs),
      isPlain: true,
      othersWait: false,
    };
  },
  ...script(luaText('take'), 'acquire'),
};

/**
 * Releases a key if that is plain: it holds the token, and no caller waits. The fence stays as it is: the last token that
 * was used is in it. Otherwise, and after any error, the whole script is asked (`release.ts`).
 */
export const give: SharedVerb<
  { readonly key: string; readonly token: string },
  { readonly status: 'released' }
> = {
  whileDown: 'waits',
  encode: ({ key, token }, { names }) => {
    const { main, queue } = names(key);
    return { keys: [main, queue], args: [token] };
  },
  decode: (reply) => (reply === 1 ? { status: 'released' } : undefined),
  ...script(luaText('give'), 'release'),
};
