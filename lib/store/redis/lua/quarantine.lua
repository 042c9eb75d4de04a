--[[
  KEYS    epoch
  ARGV    1 longest TTL in ms
          2 '1' takes a server without an epoch key for one that never granted anything
  Returns ms of quarantine that are left
]]
-- @include clock
-- @include quarantine

local is_new = ARGV[2] == '1' and redis.call('EXISTS', KEYS[1]) == 0
return math.ceil(quarantine(KEYS[1], is_new and 0 or tonumber(ARGV[1])) / 1000)
