--[[
  The holders of a key. An exclusive lock is its owner token at the main key. Shared and limited locks have a holder
  set beside it: tokens, by the server's time in us at which they end. While the set has tokens, a marker stands at the
  main key, with the longest TTL of them. So every caller that wants the exclusive lock is refused, other software too.
  The mode of a token is part of the token.

  Behind the marker stands the fencing token of the phase: all that hold a key together have the same one. A holder of
  several keys may have a larger one, which changes nothing for later callers.

  A holder of several places of a limit has a shadow in the set: `+` and the token, with the negative end as its score.
  So the number of tokens is the number of places if no holder has more than one. The first member of the set shows
  whether one has. The number of places of a token is part of the token.

  Beside the set of a limited key may stand the limit that was set for it, `<holders>:limit`. It replaces the limit of
  the token. Without it, each token is admitted by its own limit: the places in use and those that it wants must not
  exceed it.

  Gives a script
  - `mode_of(token)`: 'shared', 'limit:<n>', or nil for one that wants the key alone;
  - `alike(mode, other)`: whether those modes hold a key together;
  - `other_limits[token]`: the limit of other holders, if `in_the_way` has found that it differs and none is set;
  - `in_the_way(main, holders, token)`: the holder of the key because of which this token may not hold it, or nil;
  - `left(main, holders, token)`: ms until that may be over, at the earliest that is known;
  - `end_of(main, holders, token)`: the end of a token that holds the key, in us. Callers by a limit wait for the first end, others for the last;
  - `holds(main, holders, token)`, `add_holder(main, holders, token, ttl, phase)` and
    `remove_holder(main, holders, token)`, which returns whether it did;
  - `take_out(holders, token)`: takes it out of the set, and nothing else;
  - `phase_of(main, holders, mode)`: the fencing token of those that hold it together in that mode, if it is known;
  - `fence_life(fence, token, life)`: for how many ms a fence is kept; holders together do not shorten it.

  If the marker was deleted, the holder set decides. A value that other software has since put there is left alone, and
  the tokens in the holder set hold nothing any more.
]]
-- @include clock
-- @include fence
-- For so long a limit that was set is kept after the last grant or renewal of a limited lock of its key: 30 days. In ms.
local LIMIT_LIFE_MS = 2592000000

local function mode_of(token) return string.match(token, '^holdfast:[^:]+:(.+)$') end
local function places_of(token) return tonumber(string.match(token, '^holdfast:[^:*]+%*(%d+):')) or 1 end
local function shadow(token) return '+' .. token end

-- All limits are one mode: holders with different numbers may hold a key together.
local function alike(mode, other)
  return mode == other or mode ~= nil and other ~= nil and string.sub(mode, 1, 6) == 'limit:' and string.sub(other, 1, 6) == 'limit:'
end
local function marker(mode) return 'holdfast::' .. mode end
local function is_marker(holder) return string.sub(holder, 1, 10) == 'holdfast::' end

-- The number of holders whose time is not over. It only reads: after a first write, a script may write although memory is full.
local function live(holders) return redis.call('ZCOUNT', holders, '(' .. text(now), '+inf') end
-- By holder set: the places of its holders beyond the first of each. They are read once, because a script may admit many callers.
local extra = {}
-- The number of their places, if some may have several: the shadows are before all other members.
local function in_use(holders, count)
  if extra[holders] then return count + extra[holders] end
  local more = 0
  for _, each in ipairs(redis.call('ZRANGEBYSCORE', holders, '-inf', '(' .. text(-now))) do
    more = more + places_of(string.sub(each, 2)) - 1
  end
  extra[holders] = more
  return count + more
end
local function one_of(holders)
  return redis.call('ZRANGEBYSCORE', holders, '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
end

local function is_in(holders, token)
  local ends = redis.pcall('ZSCORE', holders, token)
  return type(ends) == 'string' and tonumber(ends) > now
end

local function ms_until(entry) return math.ceil((tonumber(entry[2]) - now) / 1000) end

-- A marker or nothing: the key has no exclusive holder.
local function is_open(main)
  local holder = redis.pcall('GET', main)
  return not holder or type(holder) == 'string' and is_marker(holder)
end

local function holds(main, holders, token)
  if not mode_of(token) then return redis.pcall('GET', main) == token end
  return is_open(main) and is_in(holders, token)
end

local function end_of(main, holders, token)
  if mode_of(token) then return tonumber(redis.call('ZSCORE', holders, token)) end
  return now + redis.call('PTTL', main) * 1000
end

-- Beside a limited key: the limit that was set for it. Every script that may read it has it in its KEYS: some servers refuse others.
local function limit_name(holders) return holders .. ':limit' end

-- For tokens of a limit: the limit of other holders, if it differs and none is set.
local other_limits = {}

-- The limit that was set, false for none. It is read once.
local set_limits = {}
local function set_limit(holders)
  if set_limits[holders] == nil then set_limits[holders] = tonumber(redis.pcall('GET', limit_name(holders))) or false end
  return set_limits[holders]
end

local function in_the_way(main, holders, token)
  local holder, mode = redis.call('GET', main), mode_of(token)
  if holder == token then return nil end
  if holder and not is_marker(holder) then return holder end
  local count = live(holders)
  local own = mode and tonumber(string.match(mode, '^limit:(%d+)$'))
  local set = own and set_limit(holders)
  local limit = set or own
  if count == 0 then return limit and places_of(token) > limit and marker(mode) or nil end
  -- The latest holder has removed those whose time was over: the mode of the first one is that of all others.
  local first = redis.call('ZRANGE', holders, 0, 0)[1]
  local has_shadows = string.sub(first, 1, 1) == '+'
  local present = mode_of(has_shadows and string.sub(first, 2) or first)
  if not alike(mode, present) then return marker(present) end
  if not limit then return nil end
  if not set and mode ~= present then other_limits[token] = tonumber(string.match(present, '^limit:(%d+)$')) end
  if has_shadows then count = in_use(holders, count) end
  if count + places_of(token) > limit and not holds(main, holders, token) then return marker(mode) end
  return nil
end

local function left(main, holders, token)
  local first = one_of(holders)
  if first[1] and alike(mode_of(token), mode_of(first[1])) then return ms_until(first) end
  local pttl = redis.call('PTTL', main)
  if pttl ~= -2 or not first[1] then return pttl end
  return ms_until(redis.call('ZREVRANGE', holders, 0, 0, 'WITHSCORES'))
end

local function phase_of(main, holders, mode)
  -- The marker may outlast its holders, because its TTL was rounded up.
  local first = one_of(holders)[1]
  local marked, phase = string.match(redis.call('GET', main) or '', '^holdfast::(%S+) (%d+)$')
  if not phase or not first or not alike(marked, mode) or not alike(mode_of(first), mode) then return nil end
  phase = tonumber(phase)
  return phase <= LARGEST_FENCE and phase or nil
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
    local ends = now + ttl * 1000
    if extra[holders] and not is_in(holders, token) then extra[holders] = extra[holders] + places_of(token) - 1 end
    redis.call('ZADD', holders, ends, token)
    if places_of(token) > 1 then redis.call('ZADD', holders, -ends, shadow(token)) end
    redis.call('ZREMRANGEBYSCORE', holders, -now, now)
    -- A limit that was set is kept while there are holders by a limit, and some time after that.
    if set_limits[holders] ~= false and string.sub(mode, 1, 6) == 'limit:' then
      redis.pcall('PEXPIRE', limit_name(holders), LIMIT_LIFE_MS)
    end
    put_marker(main, holders, mode, phase)
  else
    redis.call('SET', main, token, 'PX', ttl)
  end
end

local function take_out(holders, token)
  extra[holders] = nil
  redis.call('ZREM', holders, token)
  if places_of(token) > 1 then redis.call('ZREM', holders, shadow(token)) end
end

local function remove_holder(main, holders, token)
  local mode = mode_of(token)
  if not holds(main, holders, token) then
    if mode and not is_open(main) then pcall(take_out, holders, token) end
    return false
  end
  if not mode then
    redis.call('DEL', main)
    return true
  end
  local phase = phase_of(main, holders, mode)
  take_out(holders, token)
  if live(holders) > 0 then put_marker(main, holders, mode, phase) else redis.call('DEL', main, holders) end
  return true
end
