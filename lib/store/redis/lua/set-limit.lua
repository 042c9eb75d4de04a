--[[
  KEYS    main, fence, queue, holders, limit of the key
  ARGV    1 limit ('' = none is set any more)
          2 how the line is decided: 'cluster', else standalone
  Returns 1
]]
-- @include clock
-- @include fence
-- @include holders
-- @include line

if ARGV[1] == '' then
  -- To delete a key that does not exist writes nothing, and WAIT counts only what a request writes. Redis refuses this when memory is full.
  redis.pcall('SET', KEYS[5], '', 'PX', LIMIT_LIFE_MS)
  redis.call('DEL', KEYS[5])
else
  redis.call('SET', KEYS[5], ARGV[1], 'PX', LIMIT_LIFE_MS)
end
pcall(grant_next, KEYS[1], KEYS[3], KEYS[4], '', ARGV[2] == '')
return 1
