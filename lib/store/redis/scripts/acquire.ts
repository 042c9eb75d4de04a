import type { AcquireRequest, Granted, Held, Unavailable } from '../../lock-store.js';
import { isOwnerToken } from '../../owner-token.js';
import { quarantinedFor, type Quarantined } from './quarantine.js';
import {
  callOn,
  isCount,
  isFromClock,
  isPttl,
  lineArgument,
  luaText,
  orEmpty,
  script,
  ticketOf,
  tokenOf,
  trimmed,
  type ServerFacts,
  type Verb,
} from './script.js';

/** What one script is asked for. */
export interface AcquireCall extends Omit<AcquireRequest, 'line' | 'splits'> {
  /** The place to stand in line at, at the busy key; '' for none. */
  readonly member: string;
  /** The ticket that it had before, at the first key. */
  readonly ticket: number | undefined;
  /** A fencing token proposed by the client, so that several servers agree; 0 for none. */
  readonly proposal: number;
}

/** What one server says to a request for a lock. */
export type Vote =
  | (Granted & { readonly othersWait: boolean })
  /** `holder` is '' for a key that is kept, for that long, for a caller before us. */
  | (Omit<Held, 'contended'> & { readonly holder: string })
  | Unavailable;

type AcquireReply = (Vote | Quarantined) & {
  readonly clockUs?: number;
};

/**
 * No message notifies us of the release: the holder is software that does not know inboxes, or our place in line was
 * refused.
 */
const UNTOLD_CHECK_MS = 1_000;

/**
 * What a refusal tells of the holder.
 *
 * @param pttl negative for a lock without TTL
 * @param isAddressed whether messages can name the caller: it does not want to stand in line, or stands there
 */
export function refusal(
  holder: string,
  pttl: number,
  isAddressed = true,
): { readonly holder: string; readonly remainingMs: number; readonly checkAgainMs: number } {
  const remainingMs = pttl < 0 ? Infinity : pttl;
  const willBeTold = isAddressed && isOwnerToken(holder);
  const checkAgainMs = willBeTold ? remainingMs : Math.min(UNTOLD_CHECK_MS, remainingMs);
  return { holder, remainingMs, checkAgainMs };
}

const [GRANTED, REFUSED, QUARANTINED] = [1, 0, -1];

function decode(
  reply: unknown,
  { keys, member, keeps, proposal }: Pick<AcquireCall, 'keys' | 'member' | 'keeps' | 'proposal'>,
  { lineMode }: Pick<ServerFacts, 'lineMode'>,
  shortfall?: Unavailable,
): AcquireReply | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [result, clockUs, first, second, third, fourth, fifth, sixth, seventh] = reply as unknown[];
  if (!isCount(clockUs) || !isCount(first)) return undefined;
  if (result === GRANTED)
    return (
      shortfall ?? {
        status: 'granted',
        clockUs,
        fencingToken: first,
        isFromClock: first === tokenOf(clockUs, proposal) && isFromClock(first, clockUs),
        othersWait: Number(second) > 0,
        otherLimit: isCount(third) ? third : undefined,
      }
    );
  if (result === QUARANTINED) return { ...quarantinedFor(first), clockUs };
  const key = keys[first - 1];
  if (result !== REFUSED || key === undefined || !isPttl(second) || typeof third !== 'string')
    return undefined;
  const ticket = ticketOf(fourth);
  // The fence is when the key was granted last, by the server's clock, or a little later.
  const since = isCount(fifth) ? fifth : 0;
  return {
    status: 'held',
    clockUs,
    key,
    ...refusal(third, second, ticket !== undefined || member === ''),
    // No server of several decides who is next.
    ticket: lineMode === 'quorum' ? undefined : ticket,
    otherLimit: isCount(seventh) ? seventh : undefined,
    heldForMs: Math.max(0, clockUs - since) / 1_000,
    kept: keeps === undefined ? undefined : sixth === 1,
  };
}

/**
 * Takes all keys or none. It first grants what earlier callers can have, then reads all keys, then takes them, because
 * a script that fails in the middle keeps what it wrote. Without a line, the first write is the one that Redis refuses
 * when its memory is full.
 *
 * A key that already contains the token is the caller's. It is a claim, an earlier key that the caller holds while it
 * waits, or the request was sent twice. After a refusal at a later key than the first, the script passes these keys on.
 */
export const acquireScript: Verb<AcquireCall, AcquireReply> = {
  encode(request, server) {
    const encoded = callOn(request.keys, server, server.epoch);
    encoded.push(
      request.token,
      request.ttlMs,
      server.options.fenceKeepMs,
      lineArgument(server.lineMode),
      request.member,
      orEmpty(request.ticket),
      request.proposal === 0 ? '' : request.proposal,
      orEmpty(server.options.restartGuard?.maxTtlMs),
      orEmpty(request.joins),
      orEmpty(request.keeps?.ttlMs),
      orEmpty(request.keeps?.limitMs),
      orEmpty(request.keeps?.before),
    );
    return trimmed(encoded);
  },
  decode,
  ...script(luaText('acquire'), 'acquire'),
};
