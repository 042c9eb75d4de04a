import { CLOCK, script } from './script.js';

/**
 * Raises the fences of keys that were granted in one slot, or on one server, to the token that was agreed on over several, where the
 * lease is still ours. KEYS: main, fence of each key. ARGV: token, fencing token, ttl ms, ms for which a fence outlives its lease.
 * Answers the number of keys raised; a smaller one than asked for means that the grant did not hold.
 */
export const raiseFenceScript = script(`${CLOCK}
local fence = tonumber(ARGV[2])
local life = text(ARGV[3] + ARGV[4] + math.max(0, math.ceil((fence - now) / 1000)))
local raised = 0
for i = 1, #KEYS, 2 do
  if redis.call('GET', KEYS[i]) == ARGV[1] then
    if tonumber(redis.call('GET', KEYS[i + 1]) or 0) < fence then
      redis.call('SET', KEYS[i + 1], ARGV[2], 'PX', life)
    end
    raised = raised + 1
  end
end
return raised
`);
