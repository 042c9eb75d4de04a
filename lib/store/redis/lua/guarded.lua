--[[
  KEYS    main, fence, queue, holders, limit of each key of the lock; then the keys of the commands
  ARGV    1 token
          2 number of keys of the lock
          then of each command: number of its parts, and the parts
  Returns {1, {reply of each command}}
          {0} a key of the lock has no holder, {-1} it has another holder: nothing was run
          {2, position of the command that failed, counted from 0, error}: those before it were run, those after it were not
]]
-- @include clock
-- @include holders

local token, last = ARGV[1], tonumber(ARGV[2]) * 5
for i = 1, last, 5 do
  local main, holders = KEYS[i], KEYS[i + 3]
  if not holds(main, holders, token) then
    local is_free = not redis.pcall('GET', main) or mode_of(token) ~= nil and is_open(main)
    return { is_free and 0 or -1 }
  end
end

local replies, at = {}, 3
while ARGV[at] do
  local size = tonumber(ARGV[at])
  -- An unknown command is an error of Lua's on some versions.
  local ok, reply = pcall(redis.pcall, unpack(ARGV, at + 1, at + size))
  local failure = not ok and reply or type(reply) == 'table' and reply.err
  if failure then
    return { 2, #replies, type(failure) == 'table' and failure.err or failure }
  end
  replies[#replies + 1] = reply
  at = at + 1 + size
end
-- Commands that are sent twice may write nothing the second time, and WAIT counts only what a request writes. This write is the last one:
-- after it, Redis would refuse no command although its memory is full. Redis may refuse it, where the commands only read.
local left_ms = redis.call('PTTL', KEYS[1])
if left_ms > 0 then redis.pcall('PEXPIRE', KEYS[1], left_ms) end
return { 1, replies }
