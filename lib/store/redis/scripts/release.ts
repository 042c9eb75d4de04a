import { CLOCK, PROPOSAL_BOUND_US, script } from './script.js';

/** How many processes in line hear of one release; the others are told by the next one, or look by themselves. */
const MOST_HEARD = 100;

/** How many one script tells at the most, in order to find those that hear it: it blocks the server meanwhile. */
const MOST_TOLD = 1_000;

/**
 * Gives keys back, where the lease is ours or, with an empty token, whoever's it is, and tells those who wait. KEYS: main, fence,
 * queue of each key. ARGV: token ('' = any), '1' on a Cluster, '1' to tell nobody, ms for which a fence outlives its lease, fencing
 * token of the lease ('' = unknown). Answers the number of keys given back.
 *
 * Who is told leaves the line, heard or not: whoever died in line does not stand in the way of the living. On a Cluster PUBLISH
 * counts the subscribers of one node only, so there as many are told as one script can tell.
 *
 * The fence is raised above the lease that ends, so that a renewal that comes late, and would put the key back, finds it touched. Where
 * there is none, because the server forgot it, one is put up: above the lease that ends if that is known, above all of them if it is
 * ended by force, and else below all of them, for what was never granted must not stand in the way of a holder.
 */
export const releaseScript = script(`${CLOCK}
local quiet, released, budget = ARGV[3] == '1', 0, ${String(MOST_TOLD)}

local function tell(key, queue)
  -- Every key's share is enough for a line of the living.
  local most = math.max(budget, ${String(MOST_HEARD)})
  local told, heard = 0, 0
  for _, inbox in ipairs(redis.pcall('ZRANGE', queue, 0, most - 1)) do
    if heard == ${String(MOST_HEARD)} then break end
    local receivers = redis.pcall('PUBLISH', inbox, key)
    told = told + 1
    -- An error (forbidden) says nothing about who listens.
    if receivers ~= 0 and ARGV[2] ~= '1' then heard = heard + 1 end
  end
  if told > 0 then redis.pcall('ZREMRANGEBYRANK', queue, 0, told - 1) end
  budget = budget - told
end

for i = 1, #KEYS, 3 do
  -- pcall: what is no lock of anybody's (another type) does not keep the other keys from being given back.
  local holder = redis.pcall('GET', KEYS[i])
  if type(holder) == 'string' and (ARGV[1] == '' or holder == ARGV[1]) then
    redis.call('DEL', KEYS[i])
    if redis.call('EXISTS', KEYS[i + 1]) == 1 then redis.pcall('INCR', KEYS[i + 1]) end
    if not quiet then tell(KEYS[i], KEYS[i + 2]) end
    released = released + 1
  elseif not holder then
    local above = 1
    if ARGV[1] == '' then above = now + ${String(PROPOSAL_BOUND_US)} elseif ARGV[5] ~= '' then above = ARGV[5] + 1 end
    local life = tonumber(ARGV[4]) + math.max(0, math.ceil((above - now) / 1000)) + 1
    local added = redis.pcall('SET', KEYS[i + 1], text(above), 'PX', life, 'NX')
    if not added and ARGV[1] == '' then redis.pcall('INCR', KEYS[i + 1]) end
  end
end
return released
`);
