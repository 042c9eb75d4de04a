import { CLOCK, script } from './script.js';

/**
 * Gives a script `quarantine(epoch, max_ttl)`: the µs for which this server must not vote yet. It remembers everything that it has
 * granted as long as the epoch key is there and names the server's present run; from the first look at one that does not, it may have
 * forgotten leases of up to `max_ttl` ms. (Redis' page on distributed locks calls it "delayed restarts".)
 *
 * Asked inside the scripts that vote, so that nothing can happen between the question and the vote. Needs `CLOCK`.
 */
export const QUARANTINE = `
local function quarantine(epoch, max_ttl)
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  local known, over = string.match(redis.call('GET', epoch) or '', '^(%w+) (%d+)$')
  -- A clock that was wrong once must not lock the server out for as long as it was wrong.
  if known ~= run or tonumber(over) > now + max_ttl * 1000 then
    over = text(now + max_ttl * 1000)
    redis.call('SET', epoch, run .. ' ' .. over)
  end
  return math.max(0, tonumber(over) - now)
end
`;

/**
 * Looks at the guard of a server, and with a second argument of '1' takes a server without an epoch key for one that never granted
 * anything. KEYS: epoch. ARGV: longest TTL in ms, '1' to bootstrap. Answers the ms of quarantine that are left.
 */
export const quarantineScript = script(`${CLOCK}${QUARANTINE}
if ARGV[2] == '1' and redis.call('EXISTS', KEYS[1]) == 0 then
  return math.ceil(quarantine(KEYS[1], 0) / 1000)
end
return math.ceil(quarantine(KEYS[1], tonumber(ARGV[1])) / 1000)
`);
