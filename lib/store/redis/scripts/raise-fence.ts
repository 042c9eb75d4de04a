import { FENCE } from './fence.js';
import { HOLDERS } from './holders.js';
import { CLOCK, script } from './script.js';

/**
 * Raises the fences of keys that were granted in one slot, or on one server, to the token that was agreed on over several, where the
 * lease is still ours. KEYS: main, fence, holders of each key. ARGV: token, fencing token, ttl ms, ms for which a fence outlives its lease.
 * Answers the number of keys raised; a smaller one than asked for means that the grant did not hold.
 */
export const raiseFenceScript = script(`${CLOCK}${FENCE}${HOLDERS}
local token, fence = ARGV[1], tonumber(ARGV[2])
local life = ARGV[3] + ARGV[4] + math.max(0, math.ceil((fence - now) / 1000))
local raised = 0
for i = 1, #KEYS, 3 do
  local main, holders = KEYS[i], KEYS[i + 2]
  if holds(main, holders, token) then
    local stored, damaged = fence_at(KEYS[i + 1])
    if damaged then return damaged end
    if stored < fence then
      redis.call('SET', KEYS[i + 1], ARGV[2], 'PX', text(fence_life(KEYS[i + 1], token, life)))
    end
    if mode_of(token) and (phase_of(main, holders, mode_of(token)) or 0) < fence then mark(main, holders, mode_of(token), fence) end
    raised = raised + 1
  end
end
return raised
`);
