--[[
  KEYS    main, fence, queue, holders, limit of each key; with a guard also its epoch key, last
  ARGV    1 token
          2 token that replaces it
          3 ttl in ms
          4 ms for which a fence outlives its lease
          5 last fencing token that was used under the lease
          6 how the line is decided: 'cluster', else standalone
          7 longest TTL in ms of the restart guard, where a caller is granted the keys by it (may be missing)
  Returns {1} all keys have the new token. One that had it before is left as it is: the request was sent twice, or the server came back with
          older data, in which a token must not last longer than it did
          {0, fence} a key has no holder, {-1, fence} a key has another holder: nothing was changed
          {-2, us of quarantine} nothing was changed
]]
-- @include clock
-- @include fence
-- @include quarantine
-- @include holders
-- @include line

local token, to, ttl, keep, used, line = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] or ''
local mode, max_ttl, is_given, fences = mode_of(to), tonumber(ARGV[7]), {}, {}
local last = max_ttl and #KEYS - 1 or #KEYS

for i = 1, last, 5 do
  local main, queue, holders = KEYS[i], KEYS[i + 2], KEYS[i + 3]
  local stored, damaged = fence_at(KEYS[i + 1])
  if damaged then return damaged end
  fences[i] = stored
  is_given[i] = holds(main, holders, token)
  if not is_given[i] and not holds(main, holders, to) then
    local is_free = not redis.pcall('GET', main) or mode ~= nil and is_open(main)
    if is_free then pcall(grant_next, main, queue, holders, '', line == '') end
    return { is_free and 0 or -1, text(stored) }
  end
end
local quarantined = max_ttl and quarantine(KEYS[#KEYS], max_ttl) or 0
if quarantined > 0 then return { -2, quarantined } end

for i = 1, last, 5 do
  local main, fence, queue, holders = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  local life = ttl + keep + math.max(0, math.ceil((math.max(fences[i], used) - now) / 1000))
  -- The write that Redis does not refuse when memory is full comes first: after it, Redis refuses none. A request that is sent twice
  -- writes twice, too: otherwise WAIT counts nothing.
  redis.pcall('PEXPIRE', fence, text(fence_life(fence, to, life)))
  if is_given[i] then
    local ends, phase = end_of(main, holders, token), mode and phase_of(main, holders, mode)
    if mode then take_out(holders, token) end
    add_holder(main, holders, to, ttl, phase)
    if not mode and used > fences[i] then redis.pcall('SET', fence, text(used), 'PX', text(life)) end
    -- The callers in line wait for an end that has changed.
    if end_of(main, holders, to) < ends then notify_next(main, queue, holders, nil, 0, line == '', {}) end
  end
end
return { 1 }
