--[[
  KEYS    main, fence, queue, holders, limit of each key
  ARGV    as far as there are any, each of them may be '':
          1 token
          2 how the line is decided: 'cluster', 'quorum', else standalone
          3 last fencing token that was used
          4 ms for which a fence outlives its lease ('' = a missing fence is not written)
          5 place in line to leave
          6 which callers are woken: 'nobody', or '' for all in line that it concerns
          7 ms for which keys stay taken with their token, instead of being free at once
  Returns number of keys that were released
]]
-- @include clock
-- @include fence
-- @include holders
-- @include line

local token, line, used, keep = ARGV[1] or '', ARGV[2] or '', tonumber(ARGV[3]), ARGV[4] or ''
local member, wakes = ARGV[5] or '', ARGV[6] or ''
local hold = tonumber(ARGV[7])

local function raise_fence(fence)
  local stored = tonumber(redis.pcall('GET', fence))
  if stored then redis.pcall('SET', fence, text(math.max(stored, used or 0) + 1), 'KEEPTTL') end
end

local function keep_held(main, fence, holders)
  -- This write is first: after it, a server whose memory is full refuses no other write.
  redis.call('PEXPIRE', main, hold)
  if mode_of(token) then add_holder(main, holders, token, hold, phase_of(main, holders, mode_of(token))) end
  -- The fence must outlive the key, even if the key lasts longer than before.
  local life = redis.pcall('PTTL', fence)
  if type(life) == 'number' and life > 0 then redis.pcall('PEXPIRE', fence, text(life + hold)) end
end

local released = 0
local function give_back(i)
  local main, fence, queue, holders = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  -- pcall: a value of another type is no lock, and no error.
  local holder = redis.pcall('GET', main)
  if member ~= '' then dequeue(queue, member) end
  if type(holder) ~= 'table' then
    local taken, lasted = false, redis.pcall('PTTL', main)
    if not hold then taken = remove_holder(main, holders, token)
    elseif holds(main, holders, token) then
      taken = true
      keep_held(main, fence, holders)
    end
    holder = redis.pcall('GET', main)
    if taken then
      released = released + 1
      -- The remaining holders have the same fencing token; a holder of other keys too may have a larger one.
      if not holder or holder == token then raise_fence(fence) end
      -- The callers in line wait for an end that has changed.
      local is_sooner = holder and (hold or redis.pcall('PTTL', main) < lasted)
      if is_sooner and line ~= 'quorum' then notify_next(main, queue, holders, nil, 0, line == '', {}) end
      if (is_sooner or not holder) and line == 'quorum' and wakes ~= 'nobody' then notify_all(main, queue) end
    elseif not holder and keep ~= '' then
      local above = used and used + 1 or 1
      local life = keep + math.max(0, math.ceil((above - now) / 1000)) + 1
      local added = redis.pcall('SET', fence, text(above), 'PX', life, 'NX')
      if not added and used then raise_fence(fence) end
    end
  end
end

-- Each key on its own: a foreign value at one key does not keep the others from being released.
local failed
for i = 1, #KEYS, 5 do
  local ok, problem = pcall(give_back, i)
  -- Before Redis 7 a text.
  if not ok then failed = type(problem) == 'table' and problem or redis.error_reply(problem) end
end
if line ~= 'quorum' then
  for i = 1, #KEYS, 5 do pcall(grant_next, KEYS[i], KEYS[i + 2], KEYS[i + 3], '', line == '') end
end
return failed or released
