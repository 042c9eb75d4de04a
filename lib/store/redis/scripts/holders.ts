import { MARK } from '../../owner-token.js';
import { LARGEST_FENCE } from './fence.js';

/**
 * Who holds a key. An exclusive lock is its owner token at the main key. Shared and limited locks have a holder set beside it, tokens by
 * the server's time in µs at which they end; as long as there are any, a marker stands at the main key, with the longest TTL of them, so
 * that everybody who wants the key for himself is refused, other software too. How a token holds is written in the token.
 *
 * Behind the marker stands the fencing token of the phase: all who hold a key together have the same one, over several masters too. One
 * who took several keys may have a larger one, which changes nothing for those who come after.
 *
 * Gives a script
 * - `mode_of(token)`: 'shared', 'limit:<n>', or nil for one that wants the key alone;
 * - `in_the_way(main, holders, token)`: who holds the key so that this token may not, or nil;
 * - `left(main, holders, token)`: ms until that may be over at the earliest that is known;
 * - `holds(main, holders, token)`, `add_holder(main, holders, token, ttl, phase)` and `remove_holder(main, holders, token)`, which answers whether it did;
 * - `phase_of(main, holders, mode)`: the fencing token of those who hold it together in that mode, if it is known;
 * - `fence_life(fence, token, life)`: the ms for which a fence is to be kept, which those who hold a key together do not shorten.
 *
 * Somebody may delete the marker: what counts is the holder set. What other software put in its place since is left alone, and those in
 * the holder set hold nothing any more. Needs `CLOCK`.
 */
export const HOLDERS = `
local function mode_of(token) return string.match(token, '^${MARK}[^:]+:(.+)$') end
local function marker(mode) return '${MARK}:' .. mode end
local function is_marker(holder) return string.sub(holder, 1, ${String(MARK.length + 1)}) == '${MARK}:' end

-- Those whose time is not over. Reads only: a script that has written something is let write on when memory is full.
local function live(holders) return redis.call('ZCOUNT', holders, '(' .. text(now), '+inf') end
local function one_of(holders)
  return redis.call('ZRANGEBYSCORE', holders, '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
end

local function ms_until(entry) return math.ceil((tonumber(entry[2]) - now) / 1000) end

-- A marker or nothing: the key is nobody's who wants it alone.
local function is_open(main)
  local holder = redis.pcall('GET', main)
  return not holder or type(holder) == 'string' and is_marker(holder)
end

local function holds(main, holders, token)
  if not mode_of(token) then return redis.pcall('GET', main) == token end
  local ends = redis.pcall('ZSCORE', holders, token)
  return type(ends) == 'string' and tonumber(ends) > now and is_open(main)
end

local function in_the_way(main, holders, token)
  local holder, mode = redis.call('GET', main), mode_of(token)
  if holder == token then return nil end
  if holder and not is_marker(holder) then return holder end
  local count = live(holders)
  if count == 0 then return nil end
  local present = mode_of(one_of(holders)[1])
  if mode ~= present then return marker(present) end
  local limit = tonumber(string.match(mode, '^limit:(%d+)$'))
  if limit and count >= limit and not holds(main, holders, token) then return marker(mode) end
  return nil
end

local function left(main, holders, token)
  local first = one_of(holders)
  if first[1] and mode_of(token) == mode_of(first[1]) then return ms_until(first) end
  local pttl = redis.call('PTTL', main)
  if pttl ~= -2 or not first[1] then return pttl end
  return ms_until(redis.call('ZREVRANGE', holders, 0, 0, 'WITHSCORES'))
end

local function phase_of(main, holders, mode)
  -- The marker may outlast those whom it stands for, by what its TTL was rounded up.
  local first = one_of(holders)[1]
  local marked, phase = string.match(redis.call('GET', main) or '', '^${MARK}:(%S+) (%d+)$')
  if not phase or not first or marked ~= mode or mode_of(first) ~= mode then return nil end
  phase = tonumber(phase)
  return phase <= ${String(LARGEST_FENCE)} and phase or nil
end

local function fence_life(fence, token, life)
  return mode_of(token) and math.max(life, redis.call('PTTL', fence)) or life
end

local function put_marker(main, holders, mode, phase)
  local longest = ms_until(redis.call('ZREVRANGE', holders, 0, 0, 'WITHSCORES'))
  redis.call('SET', main, phase and marker(mode) .. ' ' .. text(phase) or marker(mode), 'PX', longest)
  redis.call('PEXPIRE', holders, longest)
end

local function add_holder(main, holders, token, ttl, phase)
  local mode = mode_of(token)
  if mode then
    redis.call('ZADD', holders, now + ttl * 1000, token)
    redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
    put_marker(main, holders, mode, phase)
  else
    redis.call('SET', main, token, 'PX', ttl)
  end
end

local function remove_holder(main, holders, token)
  local mode = mode_of(token)
  if not holds(main, holders, token) then
    if mode and not is_open(main) then redis.pcall('ZREM', holders, token) end
    return false
  end
  if not mode then
    redis.call('DEL', main)
    return true
  end
  local phase = phase_of(main, holders, mode)
  redis.call('ZREM', holders, token)
  if live(holders) > 0 then put_marker(main, holders, mode, phase) else redis.call('DEL', main, holders) end
  return true
end
`;
