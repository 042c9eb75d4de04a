import { QUARANTINE } from './quarantine.js';
import { CLOCK, PROPOSAL_BOUND_US, script } from './script.js';

/**
 * Takes all keys or none. KEYS: main, fence, queue of each key; with a guard also its epoch key, last. Reads everything before it
 * writes anything, because a script that fails in the middle keeps what it wrote; the first write is the one that Redis refuses when
 * memory is full.
 *
 * ARGV: token, ttl ms, fencing token proposed by the client so that several servers agree, ms for which a fence outlives its lease,
 * inbox to stand in line with ('' = do not), longest TTL in ms of the restart guard ('' = none).
 * Answers: {1, fencing token, clock}, or {0, position of the busy key, holder's PTTL, holder's token, 1 when standing in line there,
 * clock}, or {-1, µs of quarantine, clock}.
 */
export const acquireScript = script(`${CLOCK}${QUARANTINE}
local token, ttl, proposal, keep, inbox = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local max_ttl = tonumber(ARGV[6])
local last = max_ttl and #KEYS - 1 or #KEYS

local highest, mine = 0, 0
for i = 1, last, 3 do
  local holder = redis.call('GET', KEYS[i])
  if holder and holder ~= token then
    local pttl = redis.call('PTTL', KEYS[i])
    local standing = 0
    if inbox ~= '' then
      -- NX: who looks again keeps the place. The line outlives the lock, or a holder that dies would take it along.
      local added = redis.pcall('ZADD', KEYS[i + 2], 'NX', now, inbox)
      if type(added) == 'number' then standing = 1 end
      redis.pcall('PEXPIRE', KEYS[i + 2], math.max(pttl, 0) + keep)
    end
    return { 0, (i + 2) / 3, pttl, holder, standing, text(now) }
  end
  if holder then mine = mine + 1 end
  highest = math.max(highest, tonumber(redis.call('GET', KEYS[i + 1]) or 0))
end

-- Sent twice: the grant of the first time still stands.
if mine > 0 and mine * 3 == last then return { 1, text(highest), text(now) } end

local quarantined = max_ttl and quarantine(KEYS[#KEYS], max_ttl) or 0
if quarantined > 0 then return { -1, text(quarantined), text(now) } end

local fence = math.max(now, highest + 1)
if proposal <= now + ${String(PROPOSAL_BOUND_US)} then fence = math.max(fence, proposal) end
-- The fence must outlive the lease by as much as it is ahead of this server's clock.
local life = text(ttl + keep + math.ceil((fence - now) / 1000))
for i = 1, last, 3 do
  redis.call('SET', KEYS[i + 1], text(fence), 'PX', life)
  redis.call('SET', KEYS[i], token, 'PX', ARGV[2])
  if inbox ~= '' then redis.pcall('ZREM', KEYS[i + 2], inbox) end
end
return { 1, text(fence), text(now) }
`);
