import { MARK } from '../../owner-token.js';
import { FENCE } from './fence.js';
import { CLOCK, PROPOSAL_BOUND_US } from './script.js';

/** Lua that sets `first`, the fencing token of a grant, from `now`, `highest`, the last one, and a `proposal`, if there is one. */
export const FIRST_TOKEN = `local first = math.max(now, highest + 1)
  if proposal and proposal <= now + ${String(PROPOSAL_BOUND_US)} then first = math.max(first, proposal) end`;

/**
 * Lua for how many ms a fence is kept that reserves tokens up to `last`. It must outlive the lease by as much as it is
 * ahead of this server's clock; that of a phase may be far behind it.
 */
export const FENCE_MS = 'ttl + keep + math.max(0, math.ceil((last + 1 - now) / 1000))';

/** Gives a script `next_token(highest, proposal)` and `fence_ms(last, ttl, keep)`. Needs `CLOCK`. */
export const TOKENS = `
local function next_token(highest, proposal)
  ${FIRST_TOKEN}
  return first
end

local function fence_ms(last, ttl, keep) return ${FENCE_MS} end
`;

/**
 * Serves, of several acquires (`batch.ts`), those of a free key without a line, as the script does alone
 * (`acquire.ts`). The reply is the first fencing token. Each number is written as text once.
 */
export const ACQUIRE_FREE = `${CLOCK}${FENCE}${TOKENS}
clock = now
local texts = {}
local function written(number)
  if not texts[number] then texts[number] = text(number) end
  return texts[number]
end
local names, fences, asked = {}, {}, {}
for _, i in ipairs(easy) do
  local key, arg = key_at[i], arg_at[i]
  if not string.find(ARGV[arg + 1], ':', ${String(MARK.length + 1)}, true) then
    local n = #names
    names[n + 1] = KEYS[key + 1]
    names[n + 2] = KEYS[key + 3]
    names[n + 3] = KEYS[key + 4]
    fences[#fences + 1] = KEYS[key + 2]
    asked[#asked + 1] = i
  end
end
if asked[2] then
  local are_free, stored = redis.call('EXISTS', unpack(names)) == 0, redis.pcall('MGET', unpack(fences))
  for n, i in ipairs(asked) do
    local key, arg = key_at[i], arg_at[i]
    local main, fence = KEYS[key + 1], fences[n]
    if are_free or redis.call('EXISTS', main, KEYS[key + 3], KEYS[key + 4]) == 0 then
      local highest, damaged = fence_of(stored[n] or redis.pcall('GET', fence), fence)
      local first = highest and next_token(highest, arg_counts[i] > 7 and tonumber(ARGV[arg + 8]))
      local last = first and first + ARGV[arg + 4] - 1
      local failed = damaged
      if last then
        local set = redis.pcall('SET', fence, written(last), 'PX', written(fence_ms(last, ARGV[arg + 2], ARGV[arg + 3])))
        failed = set.err and set
      end
      if not failed then redis.call('SET', main, ARGV[arg + 1], 'PX', ARGV[arg + 2]) end
      replies[i] = failed or first
    end
  end
end`;
