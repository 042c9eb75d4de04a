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

-- A limit that is not there is written, too, before it is deleted: otherwise WAIT counts nothing. Redis may refuse that when memory is full.
local written = redis.pcall('SET', KEYS[5], ARGV[1], 'PX', LIMIT_LIFE_MS)
if ARGV[1] == '' then redis.call('DEL', KEYS[5]) elseif written.err then return written end
pcall(grant_next, KEYS[1], KEYS[3], KEYS[4], '', ARGV[2] == '')
return 1
