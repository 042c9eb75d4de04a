import type { AcquireRequest, Granted, Held, Unavailable } from '../../lock-store.js';
import { isOwnerToken } from '../../owner-token.js';
import { FENCE, isFromClock, tokenOf } from './fence.js';
import { HOLDERS } from './holders.js';
import { isCount, isPttl, ticketOf } from './numbers.js';
import { LINE, lineArgument } from './line.js';
import { QUARANTINE } from './quarantine.js';
import {
  callOn,
  CLOCK,
  orEmpty,
  PROPOSAL_BOUND_US,
  script,
  trimmed,
  type ServerFacts,
  type Verb,
} from './script.js';

/** What one script is asked for. */
export interface AcquireCall extends Omit<AcquireRequest, 'line' | 'splits'> {
  /** Default: that of the server. */
  readonly fenceKeepMs?: number | undefined;
  /** The place to stand in line at; '' for none. */
  readonly member: string;
  /** The ticket that it had before. */
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

type AcquireReply = (Vote | { readonly status: 'quarantined'; readonly leftMs: number }) & {
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
  { key, member, proposal }: Pick<AcquireCall, 'key' | 'member' | 'proposal'>,
  { lineMode }: Pick<ServerFacts, 'lineMode'>,
  shortfall?: Unavailable,
): AcquireReply | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [result, clockUs, first, second, third, fourth, fifth] = reply as unknown[];
  if (!isCount(clockUs)) return undefined;
  if (result === GRANTED && isCount(first))
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
  if (result === QUARANTINED && isCount(first))
    return { status: 'quarantined', clockUs, leftMs: Math.ceil(first / 1_000) };
  if (result !== REFUSED || !isPttl(first) || typeof second !== 'string') return undefined;
  const ticket = ticketOf(third);
  // The fence is when the key was granted last, by the server's clock, or a little later.
  const since = isCount(fourth) ? fourth : 0;
  return {
    status: 'held',
    clockUs,
    key,
    ...refusal(second, first, ticket !== undefined || member === ''),
    // No server of several decides who is next.
    ticket: lineMode === 'quorum' ? undefined : ticket,
    otherLimit: isCount(fifth) ? fifth : undefined,
    heldForMs: Math.max(0, clockUs - since) / 1_000,
  };
}

const ACQUIRE = `--[[
  KEYS    main, fence, queue, holders; with a guard also its epoch key
  ARGV    1 token
          2 ttl in ms
          3 ms for which a fence outlives its lease
          as far as there are any, each of them may be '':
          4 how the line is decided: 'cluster', 'quorum', else standalone
          5 place to stand in line at
          6 ticket it had before
          7 fencing token proposed by the client
          8 longest TTL in ms of the restart guard
          9 fencing token of a phase that the caller may join, even while other callers wait
  Reply   {1, clock in us, fencing token, number of others in line, limit of other holders, if it differs}
          {0, clock, holder's PTTL, holder's token or '' for a key that is kept, for that long, for an earlier caller,
           ticket when standing in line or '', its fence, limit of other holders}
          {-1, clock, us of quarantine}
]]
${CLOCK}${FENCE}
local main, fence, queue, holders, epoch = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, ttl, keep, line = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] or ''
local member, ticket, proposal, max_ttl = ARGV[5] or '', tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local joins = tonumber(ARGV[9])
${QUARANTINE}${HOLDERS}${LINE}
local mode, counts, in_order = mode_of(token), line == '', line ~= 'quorum'
-- A caller that missed its claim comes back with its old ticket: it is still before all later callers.
local before = ticket or math.huge
local has_line = redis.call('EXISTS', queue) == 1

-- Enters the line. Over several masters no ticket counts.
local function enqueue(pttl)
  if member == '' then return '' end
  if not ticket then
    local top = redis.pcall('ZREVRANGE', queue, 0, 0, 'WITHSCORES')
    ticket = math.max(now, (tonumber(top[2]) or 0) + 1)
  end
  -- NX: a caller that tries again keeps its place. The line outlives the lock: otherwise a holder that dies would end it.
  local added = redis.pcall('ZADD', queue, 'NX', text(ticket), member)
  if type(added) ~= 'number' then return '' end
  redis.pcall('PEXPIRE', queue, math.max(math.max(pttl, 0) + keep, redis.pcall('PTTL', queue)))
  return text(ticket)
end

-- The holder that blocks the key, and for how many ms; '' while the key is kept for earlier callers.
local function blocker()
  if holds(main, holders, token) then return nil end
  local holder = in_the_way(main, holders, token)
  if holder then return holder, left(main, holders, token) end
  -- A holder of several keys has a larger token than an earlier phase, and a smaller one than any later phase.
  if not has_line or joins and (phase_of(main, holders, mode) or math.huge) <= joins then return nil end
  local together = redis.call('GET', main)
  local ms = in_order and kept_for(queue, token, before)
  if ms then return together or '', together and left(main, holders, token) or ms end
  return nil
end

-- Earlier callers are granted what they can have, before the key is checked for this caller.
if has_line and in_order then grant_next(main, queue, holders, token, counts, before) end
local holder, pttl = blocker()
if holder then
  local place = enqueue(pttl)
  return { 0, now, pttl, string.match(holder, '^%S*'), place, fence_at(fence) or 0, other_limits[token] }
end

local others = 0
if has_line then
  if member ~= '' then redis.pcall('ZREM', queue, member) end
  local waiting = redis.pcall('ZCARD', queue)
  if type(waiting) == 'number' then others = waiting end
end
local stored, damaged = fence_at(fence)
if damaged then return damaged end
local quarantined = max_ttl and quarantine(epoch, max_ttl) or 0
if quarantined > 0 then return { -1, now, quarantined } end

-- Callers that join holders of the key get the fencing token of the first one.
local first = mode and phase_of(main, holders, mode)
if not first then
  first = math.max(now, stored + 1)
  if proposal and proposal <= now + ${String(PROPOSAL_BOUND_US)} then first = math.max(first, proposal) end
end
-- The fence must outlive the lease by as much as it is ahead of this server's clock; that of a phase may be far behind it.
local last = math.max(first, stored)
local life = math.max(ttl + keep + math.max(0, math.ceil((last + 1 - now) / 1000)), fence_life(fence, token, 0))
redis.call('SET', fence, last, 'PX', life)
add_holder(main, holders, token, ttl, first)
-- The callers behind this one may be able to hold the key together with it.
if mode and others > 0 then grant_next(main, queue, holders, '', counts) end
return { 1, now, first, others, other_limits[token] }
`;

/**
 * Takes a key. It first grants what earlier callers can have, then reads everything, then takes the key, because a script
 * that fails in the middle keeps what it wrote. Without a line, the first write is the one that Redis refuses when its
 * memory is full.
 *
 * A key that already contains the token is the caller's: it is a claim, or the request was sent twice.
 */
export const acquireScript: Verb<AcquireCall, AcquireReply> = {
  encode(request, server) {
    const encoded = callOn([request.key], server, server.epoch);
    encoded.push(
      request.token,
      request.ttlMs,
      request.fenceKeepMs ?? server.options.fenceKeepMs,
      lineArgument(server.lineMode),
      request.member,
      orEmpty(request.ticket),
      request.proposal === 0 ? '' : request.proposal,
      orEmpty(server.options.restartGuard?.maxTtlMs),
      orEmpty(request.joins),
    );
    return trimmed(encoded);
  },
  decode,
  ...script(ACQUIRE, 'acquire'),
};
