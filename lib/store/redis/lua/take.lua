--[[
  KEYS    main, fence, queue, holders of each key
  ARGV    of each key: token, ttl in ms, ms for which its fence is kept, proposed fencing token or ''
  Returns of each key the clock in us; or, if another token holds it and no caller waits, {PTTL, that token}; or 0 if it is not plain;
          of several keys a list
]]
-- @include proposal-bound

local time = redis.call('TIME')
local clock = time[1] .. string.sub('00000' .. time[2], -6)
local replies = {}
for i = 1, #KEYS, 4 do
  local reply, fence = 0, clock
  if redis.call('EXISTS', KEYS[i + 2], KEYS[i + 3]) == 0 then
    local last, proposal = redis.pcall('GET', KEYS[i + 1]), ARGV[i + 3]
    if proposal ~= '' and proposal - clock > 0 and proposal - clock <= PROPOSAL_BOUND_US then fence = proposal end
    local is_behind = not last or #last == 16 and not string.find(last, '%D') and last - fence < 0
    if is_behind and redis.call('SET', KEYS[i], ARGV[i], 'NX', 'PX', ARGV[i + 1]) then
      redis.call('SET', KEYS[i + 1], fence, 'PX', ARGV[i + 2])
      reply = clock
    else
      local holder = redis.pcall('GET', KEYS[i])
      if type(holder) == 'string' and holder ~= ARGV[i] and string.sub(holder, 1, 10) ~= 'holdfast::' then
        reply = { redis.call('PTTL', KEYS[i]), string.match(holder, '^%S*') }
      end
    end
  end
  replies[(i + 3) / 4] = reply
end
return replies[2] and replies or replies[1]
