import { script } from './script.js';

/**
 * Takes all keys or none. KEYS: main, fence, queue of each key. Reads everything before it writes anything, because a script that
 * fails in the middle keeps what it wrote; the first write is the one that Redis refuses when memory is full.
 *
 * ARGV: token, ttl ms, smallest fencing token allowed, ms for which a fence outlives its lease, inbox to stand in line with ('' = do not).
 * Answers: {1, fencing token} or {0, position of the busy key, holder's PTTL, holder's token, 1 when standing in line there}.
 */
export const acquireScript = script(`
local token, ttl, floor, keep, inbox = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

local fence, mine = math.max(now, floor), 0
local highest = 0
for i = 1, #KEYS, 3 do
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
    return { 0, (i + 2) / 3, pttl, holder, standing }
  end
  local last = tonumber(redis.call('GET', KEYS[i + 1]) or 0)
  if holder then mine = mine + 1 end
  highest = math.max(highest, last)
end

-- Sent twice: the grant of the first time still stands.
if mine > 0 and mine * 3 == #KEYS and highest >= floor then
  return { 1, string.format('%.0f', highest) }
end

fence = math.max(fence, highest + 1)
-- '%.0f': Lua's default format loses digits of numbers this large.
local printed = string.format('%.0f', fence)
-- The fence must outlive the lease by as much as it is ahead of this server's clock.
local life = string.format('%.0f', ttl + keep + math.ceil((fence - now) / 1000))
for i = 1, #KEYS, 3 do
  redis.call('SET', KEYS[i + 1], printed, 'PX', life)
  redis.call('SET', KEYS[i], token, 'PX', ARGV[2])
  if inbox ~= '' then redis.pcall('ZREM', KEYS[i + 2], inbox) end
end
return { 1, printed }
`);
