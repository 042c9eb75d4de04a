--[[
  KEYS    main, fence, queue, holders, limit of each key; with a guard also its epoch key, last
  ARGV    1 ms for which a fence outlives its lease
          2 longest TTL in ms of the restart guard ('' = none)
          3 how the line is decided: 'cluster', 'quorum', else standalone
          then of each key
          - its lease's token and ttl in ms, and the last fencing token that was used under it
          - if keys may be put back (over several masters, or with a guard): the server's time in us until which the holder is sure
            of it, and the fence beside which it may be put back ('' = it may not)
  Returns {clock in us, for each key {1} renewed, {0, fence} gone, {-1} another holder's, {-2, text} an error}
]]
-- @include clock
-- @include fence
-- @include quarantine
-- @include holders
-- @include line

local keep, max_ttl, line = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local last = max_ttl and #KEYS - 1 or #KEYS
local stride = (line == 'quorum' or max_ttl) and 5 or 3

local forgetful
local function has_forgotten()
  if forgetful == nil then
    local ok, left_us = pcall(quarantine, KEYS[#KEYS], max_ttl)
    forgetful = ok and left_us > 0
  end
  return forgetful
end

local function is_ours(holder) return string.sub(holder, 1, 9) == 'holdfast:' end

local function renew(i)
  local main, fence_key, queue, holders = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  local a = (i - 1) / 5 * stride + 4
  local token, ttl, mine, sure_until, expected_fence = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2]), 0, nil
  if stride == 5 then sure_until, expected_fence = tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]) end
  local holder = redis.pcall('GET', main)
  -- If the fence is damaged nothing is put back: a later holder may be unknown.
  local stored, damaged = fence_at(fence_key)
  local fence = stored or 0
  local mode = mode_of(token)
  -- Whether the present holders do not exclude it.
  local may_join = not holder or mode ~= nil and type(holder) == 'string' and alike(string.match(holder, '^holdfast::(%S+)'), mode)

  local answer
  if type(holder) == 'table' then answer = { -2, holder.err }
  elseif holder == token or may_join and holds(main, holders, token) then answer = { 1 }
  elseif not may_join then answer = { -1 }
  else answer = { 0, text(fence) } end

  if answer[1] == 1 then
    local life = ttl + keep + math.max(0, math.ceil((math.max(fence, mine) - now) / 1000))
    -- The write that Redis does not refuse when memory is full comes first: after it, Redis refuses none.
    redis.pcall('PEXPIRE', fence_key, text(fence_life(fence_key, token, life)))
    local is_sooner
    if holder == token then
      is_sooner = ttl - redis.call('PTTL', main) < 0
      redis.call('PEXPIRE', main, ttl)
      -- Turns were taken under the lease, or the fence was lost.
      if mine > fence and not damaged then redis.pcall('SET', fence_key, text(mine), 'PX', text(life)) end
    else
      local ends = end_of(main, holders, token)
      -- Holders of one phase have one fencing token; a holder of several keys may have a larger one.
      add_holder(main, holders, token, ttl, math.min(phase_of(main, holders, mode) or mine, mine))
      is_sooner = end_of(main, holders, token) < ends
      -- No other script may run on this key while they hold it: a dead process in line must not keep the others from joining.
      if redis.pcall('EXISTS', queue) == 1 then pcall(grant_next, main, queue, holders, '', line == '') end
    end
    -- The callers in line wait for an end that has changed.
    if is_sooner and line == 'quorum' then pcall(notify_all, main, queue)
    elseif is_sooner then pcall(notify_next, main, queue, holders, nil, 0, line == '', {}) end
  elseif answer[1] > -2 and sure_until - now >= 1000 and not damaged
    and ((may_join and expected_fence == fence)
      or (max_ttl and fence <= mine and (not holder or is_ours(holder)) and has_forgotten())) then
    -- Beside its fence, a key must not outlast its lease. In quarantine, this is a renewal: the holder counts on the whole TTL.
    if expected_fence then ttl = math.min(ttl, math.floor((sure_until - now) / 1000)) end
    local raised = math.max(fence, mine)
    local life = ttl + keep + math.max(0, math.ceil((raised - now) / 1000))
    redis.call('SET', fence_key, text(raised), 'PX', text(fence_life(fence_key, token, life)))
    if not may_join then redis.call('DEL', main, holders) end
    -- The phase keeps its smallest token, whichever holder is put back first: a holder of several keys may have a larger one.
    add_holder(main, holders, token, ttl, math.min(phase_of(main, holders, mode) or mine, mine))
    answer = { 1 }
  elseif may_join and line ~= 'quorum' then
    pcall(grant_next, main, queue, holders, '', line == '')
  end
  return answer
end

local answers, failures, problem = { now }, 0, nil
for i = 1, last, 5 do
  local ok, answer = pcall(renew, i)
  if not ok then
    -- Before Redis 7 a text.
    problem = type(answer) == 'table' and answer or redis.error_reply(answer)
    failures = failures + 1
    answer = { -2, problem.err }
  end
  answers[#answers + 1] = answer
end
-- If every key failed, the server is the cause: it was made a replica, for instance.
if failures == last / 5 then return problem end
return answers
