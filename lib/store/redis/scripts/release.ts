import { LINE } from './line.js';
import { CLOCK, PROPOSAL_BOUND_US, script } from './script.js';

/**
 * Gives keys back, where the lease is ours or, with an empty token, whoever's it is, and hands them to the next in line. KEYS: main,
 * fence, queue of each key. ARGV: token ('' = any), how the line is treated; then, as far as there are any, the last fencing token that
 * was used, ms for which a fence outlives its lease ('' = put none up), member to take out of the line, '1' to tell nobody, ms for which
 * keys stay taken with their token, instead of being free at once. Answers the number of keys given back.
 *
 * The fence comes to stand above the last token that was used, so that a renewal that comes late, and would put the key back, finds it
 * touched. Where there is none, because the server forgot it, one is put up: above the lease that ends if that is known, above all of
 * them if it is ended by force, and else below all of them, for what was never granted must not stand in the way of a holder.
 */
export const releaseScript = script(`
local token, mode, used, keep, member, quiet = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] or '', ARGV[5] or '', ARGV[6] == '1'
local hold = tonumber(ARGV[7])

-- It is ours and nobody waits, nearly always: none of what follows is needed then.
if #KEYS == 3 and used and keep == '' and not hold and redis.call('EXISTS', KEYS[3]) == 0 and redis.pcall('GET', KEYS[1]) == token then
  redis.call('DEL', KEYS[1])
  redis.pcall('SET', KEYS[2], used + 1, 'XX', 'KEEPTTL')
  return 1
end
${CLOCK}${LINE}

local function touch(fence)
  local stored = tonumber(redis.pcall('GET', fence))
  if not stored then return end
  local above = (used or stored) + 1
  if above == stored then above = stored + 1 end
  redis.pcall('SET', fence, text(above), 'KEEPTTL')
end

local function raise(fence)
  local stored = tonumber(redis.pcall('GET', fence))
  if stored then redis.pcall('SET', fence, text(math.max(stored, used or 0) + 1), 'KEEPTTL') end
end

local released = 0
for i = 1, #KEYS, 3 do
  -- pcall: what is no lock of anybody's (another type) does not keep the other keys from being given back.
  local holder = redis.pcall('GET', KEYS[i])
  if member ~= '' then redis.pcall('ZREM', KEYS[i + 2], member) end
  if type(holder) == 'string' and (token == '' or holder == token) then
    touch(KEYS[i + 1])
    released = released + 1
    if hold then
      redis.call('PEXPIRE', KEYS[i], ARGV[7])
      -- The fence must outlive the key, also where that lasts longer than it would have.
      local life = redis.pcall('PTTL', KEYS[i + 1])
      if type(life) == 'number' and life > 0 then redis.pcall('PEXPIRE', KEYS[i + 1], text(life + hold)) end
      if mode ~= 'many' then warn(KEYS[i], KEYS[i + 2], hold, 0, mode == 'one', {}) end
    else
      redis.call('DEL', KEYS[i])
      holder = false
    end
    if mode == 'many' and not quiet then tell_all(KEYS[i], KEYS[i + 2]) end
  elseif not holder and keep ~= '' then
    local above = token == '' and now + ${String(PROPOSAL_BOUND_US)} or (used or 0) + 1
    local life = keep + math.max(0, math.ceil((above - now) / 1000)) + 1
    local added = redis.pcall('SET', KEYS[i + 1], text(above), 'PX', life, 'NX')
    if not added and (used or token == '') then raise(KEYS[i + 1]) end
  end
  if not holder and mode ~= 'many' then give(KEYS[i], KEYS[i + 2], '', mode == 'one') end
end
return released
`);
