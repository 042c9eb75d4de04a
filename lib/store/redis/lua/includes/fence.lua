--[[
  Gives a script `fence_at(key)`: the fencing token that is stored there, 0 for none; or nil and an error to answer with, which names the
  key. A token that is granted has to be a safe integer, or
  the next one would not be larger.
]]
-- The largest fencing token from which a script continues: every sum with it is still a safe integer. Larger values, and values that are
-- no token, were written by other software.
local LARGEST_FENCE = 9000000000000000

local function fence_at(key)
  local stored = redis.pcall('GET', key)
  if not stored then return 0 end
  local fence = type(stored) == 'string' and tonumber(stored)
  if fence and fence >= 0 and fence <= LARGEST_FENCE and fence % 1 == 0 then return fence end
  return nil, redis.error_reply('ERR the key "' .. key .. '" does not hold a fencing token that Holdfast wrote: delete it')
end
