--[[
  Gives a script `quarantine(epoch, max_ttl)`: the us for which this server must not vote yet. It remembers everything
  that it has granted if the epoch key exists and names the server's present run. From the first look at another one,
  it may have forgotten leases of up to `max_ttl` ms. Beside the run stands when that is over, and 0 once it is.
  (Redis' page on distributed locks calls it "delayed restarts".)

  It is asked inside the scripts that vote, so that nothing can happen between the question and the vote.
]]
-- @include clock

local function quarantine(epoch, max_ttl)
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  local known, over = string.match(redis.call('GET', epoch) or '', '^(%w+) (%d+)$')
  local longest = now + max_ttl * 1000
  over = tonumber(over)
  -- A clock that was wrong once must not keep the server in quarantine for the time of its error.
  if known ~= run or over > longest then
    over = max_ttl > 0 and longest or 0
    redis.call('SET', epoch, run .. ' ' .. text(over))
  elseif over > 0 and over <= now then
    -- The quarantine is over permanently, whatever the clock is set to.
    redis.pcall('SET', epoch, run .. ' 0')
  end
  return math.max(0, over - now)
end
