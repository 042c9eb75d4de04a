import { isCount } from './numbers.js';
import { CLOCK, script, type Verb } from './script.js';

/**
 * Gives a script `quarantine(epoch, max_ttl)`: the µs for which this server must not vote yet. It remembers everything
 * that it has granted if the epoch key exists and names the server's present run. From the first look at another one,
 * it may have forgotten leases of up to `max_ttl` ms. Beside the run stands when that is over, and 0 once it is.
 * (Redis' page on distributed locks calls it "delayed restarts".)
 *
 * It is asked inside the scripts that vote, so that nothing can happen between the question and the vote. Needs
 * `CLOCK`.
 */
export const QUARANTINE = `
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
`;

interface QuarantineCall {
  /** A server without an epoch key never granted anything, instead of having lost everything. */
  readonly isNew: boolean;
}

/** Looks at the guard of a server: how many ms of quarantine are left. */
export const quarantineScript: Verb<QuarantineCall, number> = {
  encode: ({ isNew }, { epoch = '', options }) => [
    1,
    epoch,
    options.restartGuard?.maxTtlMs ?? 0,
    isNew ? 1 : 0,
  ],
  decode: (reply) => (isCount(reply) ? reply : undefined),
  ...script(
    `--[[
  KEYS    epoch
  ARGV    1 longest TTL in ms
          2 '1' takes a server without an epoch key for one that never granted anything
  Reply   ms of quarantine that are left
]]
${CLOCK}${QUARANTINE}
if ARGV[2] == '1' and redis.call('EXISTS', KEYS[1]) == 0 then
  return math.ceil(quarantine(KEYS[1], 0) / 1000)
end
return math.ceil(quarantine(KEYS[1], tonumber(ARGV[1])) / 1000)
`,
    'quarantine',
  ),
};
