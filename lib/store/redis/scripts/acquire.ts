import { LINE } from './line.js';
import { QUARANTINE } from './quarantine.js';
import { CLOCK, PROPOSAL_BOUND_US, script } from './script.js';

/**
 * Takes all keys or none. KEYS: main, fence, queue of each key; with a guard also its epoch key, last. Reads everything before it
 * writes anything, because a script that fails in the middle keeps what it wrote; the first write is the one that Redis refuses when
 * memory is full.
 *
 * ARGV: token, ttl ms, ms for which a fence outlives its lease, number of fencing tokens to reserve, how the line is treated; then, as
 * far as there are any, member to stand in line as, ticket it had before, fencing token proposed by the client so that several servers
 * agree, longest TTL in ms of the restart guard; each of them may be ''.
 *
 * Answers: {1, clock in µs, first fencing token, number of others in line}, or {0, clock, position of the busy key, holder's PTTL,
 * holder's token, ticket when standing in line there or ''}, or {-1, clock, µs of quarantine}.
 *
 * A key that holds the token already is the caller's: a claim that it was given in line, or a request that was sent twice. Refused, it
 * hands on what it was given: nobody holds one key while waiting for another.
 */
export const acquireScript = script(`${CLOCK}
local token, ttl, keep, turns, mode = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local member, ticket, proposal, max_ttl = ARGV[6] or '', ARGV[7] or '', tonumber(ARGV[8]), tonumber(ARGV[9])
local last = max_ttl and #KEYS - 1 or #KEYS

local function grant(highest, others)
  local first = math.max(now, highest + 1)
  if proposal and proposal <= now + ${String(PROPOSAL_BOUND_US)} then first = math.max(first, proposal) end
  -- The fence must outlive the lease by as much as it is ahead of this server's clock.
  local life = ttl + keep + math.ceil((first + turns - now) / 1000)
  for i = 1, last, 3 do
    redis.call('SET', KEYS[i + 1], first + turns - 1, 'PX', life)
    redis.call('SET', KEYS[i], token, 'PX', ttl)
  end
  return { 1, now, first, others }
end

-- Nobody has it and nobody waits, nearly always: none of what follows is needed then.
if #KEYS == 3 and redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 then
  return grant(tonumber(redis.call('GET', KEYS[2]) or 0), 0)
end
${QUARANTINE}${LINE}
local function stand(queue, pttl)
  if member == '' then return '' end
  if ticket == '' then
    local top = redis.pcall('ZREVRANGE', queue, 0, 0, 'WITHSCORES')
    ticket = text(math.max(now, (tonumber(top[2]) or 0) + 1))
  end
  -- NX: who looks again keeps the place. The line outlives the lock, or a holder that dies would take it along.
  local added = redis.pcall('ZADD', queue, 'NX', ticket, member)
  redis.pcall('PEXPIRE', queue, math.max(math.max(pttl, 0) + keep, redis.pcall('PTTL', queue)))
  return type(added) == 'number' and ticket or ''
end

-- Whoever was too late for what it was given comes back with its old ticket: it is still before those who came after it.
local function is_before(queue)
  if ticket == '' then return false end
  local first = redis.pcall('ZRANGE', queue, 0, 0, 'WITHSCORES')
  return first[2] and tonumber(ticket) < tonumber(first[2])
end

local highest, others = 0, 0
for i = 1, last, 3 do
  local main, fence, queue = KEYS[i], KEYS[i + 1], KEYS[i + 2]
  local holder, claim = redis.call('GET', main), nil
  local has_line = redis.call('EXISTS', queue) == 1
  if not holder and has_line and mode ~= 'many' and not is_before(queue) then
    holder, claim = give(main, queue, token, mode == 'one')
  end
  if holder and holder ~= token then
    for j = 1, last, 3 do
      if redis.pcall('GET', KEYS[j]) == token then
        redis.call('DEL', KEYS[j])
        if mode ~= 'many' then give(KEYS[j], KEYS[j + 2], token, mode == 'one') end
      end
    end
    local pttl = claim or redis.call('PTTL', main)
    return { 0, now, (i + 2) / 3, pttl, holder, stand(queue, pttl) }
  end
  if has_line then
    if member ~= '' then redis.pcall('ZREM', queue, member) end
    local waiting = redis.pcall('ZCARD', queue)
    if type(waiting) == 'number' then others = others + waiting end
  end
  highest = math.max(highest, tonumber(redis.call('GET', fence) or 0))
end

local quarantined = max_ttl and quarantine(KEYS[#KEYS], max_ttl) or 0
if quarantined > 0 then return { -1, now, quarantined } end
return grant(highest, others)
`);
