--[[
  KEYS    main, queue of each key
  ARGV    token of each key
  Returns of each key 1, or 0 if it is not plain; of several keys a list
]]
local replies = {}
for i = 1, #KEYS, 2 do
  local n = (i + 1) / 2
  local is_plain = redis.call('EXISTS', KEYS[i + 1]) == 0 and redis.pcall('GET', KEYS[i]) == ARGV[n]
  replies[n] = is_plain and redis.call('DEL', KEYS[i]) or 0
end
return replies[2] and replies or replies[1]
