--[[
  KEYS    main, fence, holders, limit of each key
  ARGV    1 token
          2 fencing token
          3 ttl in ms
          4 ms for which a fence outlives its lease
          5 how the line is decided. 'cluster': the keys, which were granted briefly, are leased for the ttl
  Returns number of keys raised; a smaller one than asked for means that the grant did not hold
]]
-- @include clock
-- @include fence
-- @include holders

local token, fence = ARGV[1], tonumber(ARGV[2])
local raised = 0
for i = 1, #KEYS, 4 do
  local main, holders = KEYS[i], KEYS[i + 2]
  if holds(main, holders, token) then
    local stored, damaged = fence_at(KEYS[i + 1])
    if damaged then return damaged end
    -- The fence of a key that was granted briefly lives too briefly, however high it is.
    if stored < fence or ARGV[5] == 'cluster' then
      local highest = math.max(stored, fence)
      local life = ARGV[3] + ARGV[4] + math.max(0, math.ceil((highest - now) / 1000))
      redis.call('SET', KEYS[i + 1], text(highest), 'PX', text(fence_life(KEYS[i + 1], token, life)))
    end
    if ARGV[5] == 'cluster' then
      if mode_of(token) then add_holder(main, holders, token, ARGV[3], phase_of(main, holders, mode_of(token)))
      else redis.call('PEXPIRE', main, ARGV[3]) end
    end
    raised = raised + 1
  end
end
return raised
