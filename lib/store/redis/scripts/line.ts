import { FIRST_KEPT_MS, LONGEST_KEPT_MS, OPEN_MS, PATIENCE_MS } from '../../overtaking.js';
import { RESERVED_TOKENS } from '../../owner-token.js';
import { MOST_PASSED, PLACES } from './places.js';

/** How many callers of several keys may be overtaken at a key in one script. */
const MOST_OVERTAKEN = 100;

/** How many keys of others in line one script looks at. */
const MOST_LOOKED_AT = 2_000;

/** A place for several keys counts for so long after its caller looked last. It looks every 5 s at least. In ms. */
export const PLACE_LIFE_MS = 15_000;

/** A caller of keys in several slots, told that it may have one of them, has so long to ask for all. In ms. */
const CALLED_LIFE_MS = 1_000;

/** `keepsForMs` of `overtaking.ts` as the scripts need it: `keeps_for(ticket, claim)`, where a claim of `0` knows no patience. Needs `now`. */
export const KEEPS_FOR = `-- For how many ms yet a caller keeps its free keys from others: after a time of patience in windows that grow, with gaps in between.
local function keeps_for(ticket, claim)
  local age, window = (now - ticket) / 1000, ${String(FIRST_KEPT_MS)}
  if claim ~= '0' then age = age - ${String(PATIENCE_MS)} end
  while age >= window and window < ${String(LONGEST_KEPT_MS)} do
    age, window = age - window - ${String(OPEN_MS)}, math.min(2 * window, ${String(LONGEST_KEPT_MS)})
  end
  -- Not window by window: a place may be very old, or have a ticket that makes it look so.
  if age >= window then age = age % (window + ${String(OPEN_MS)}) end
  return age >= 0 and age < window and math.ceil(window - age) or 0
end`;

/**
 * The line at a key, with the places of `places.ts`.
 *
 * A free key goes to the oldest ticket that can have all of its keys. This script gives it all of them or none, so that
 * no caller is given one key while it waits for another. Otherwise callers that pass keys on to each other could go
 * round in a circle indefinitely. A caller that cannot have all keys is overtaken at first. Then its free keys are kept
 * for it, in windows (`overtaking.ts`).
 *
 * An upgradeable lock that waits to be upgraded is the first in the line of each of its keys, before all earlier
 * callers: it holds them. When it is the only holder of a key, it is called, and asks. Its place is worth nothing
 * without the lock that it is to upgrade.
 *
 * No script sees keys in several slots. There a place keeps its keys from the start. It is called when it is the first
 * at one of them, and asks for all, slot by slot. Tickets are the same in all slots, so the oldest of all is the first
 * at each of its keys.
 *
 * Gives a script
 *
 * `grant_next(main, fence, queue, holders, mine, counts, before)`: grants a free key to the first in line that is alive
 * and can have all of its keys. Callers behind it that may hold the key together with it are granted it too. Grants are
 * claims: their tokens with a short TTL. A caller makes its claim a lease by acquiring with that token.
 *
 * It notifies the callers with claims, and the next callers of other processes, which have to ask again if a claim is
 * not used. Each of these asks one claim later than the one before, so that several may be frozen in a row.
 *
 * It grants nothing when the line is empty, or when the first may not have the key because of its holder. It goes no
 * further than to `mine`, or, for a caller that asks for the key, to the ticket `before`. Every script that finds or
 * makes room at a key calls it, so the first in line always gets it. Needs `FENCE` and `HOLDERS`; brings `PLACES`
 * along.
 *
 * `kept_for(queue, mine, before, counts)`: for how many ms an older ticket than `before` still keeps other callers from
 * a free key; nil if none does.
 *
 * Each write is done on its own. The writes that Redis refuses when its memory is full come last.
 */
export const LINE = `${PLACES}
${KEEPS_FOR}
-- The first caller in line that keeps a key from others. It is searched for once.
local keepers = {}
local function keeper_at(queue, counts)
  if keepers[queue] then return keepers[queue] end
  local keeper = { ticket = math.huge }
  local list = redis.pcall('ZRANGE', queue, 0, ${String(MOST_OVERTAKEN - 1)}, 'WITHSCORES')
  for i = 1, #list, 2 do
    local token, claim, channel, record = place_of(list[i])
    local ticket = tonumber(list[i + 1])
    if token and is_there(channel, counts) and (not record or redis.pcall('EXISTS', record) == 1) then
      local ms = record and keeps_for(ticket, claim) or ${String(CALLED_LIFE_MS)}
      if ms > 0 then
        keeper = { ticket = ticket, token = token, ms = ms }
        break
      end
    end
  end
  keepers[queue] = keeper
  return keeper
end

local function kept_for(queue, mine, before, counts)
  local keeper = keeper_at(queue, counts)
  if keeper.token == mine or keeper.ticket >= (before or math.huge) then return nil end
  return keeper.ms
end

local function is_free(main, holders, token)
  local ok, holder = pcall(in_the_way, main, holders, token)
  return ok and not holder
end

-- Whether it can have its other keys, too. A caller that cannot is not checked again in this script, which grants keys and frees none.
local barred, looked_at = {}, 0
local function can_have(names, main, token, ticket, counts)
  if barred[token] then return false end
  for i = 1, #names, 3 do
    looked_at = looked_at + 1
    if names[i] ~= main
      and (not is_free(names[i], names[i + 2], token) or kept_for(names[i + 1], token, ticket, counts)) then
      barred[token] = true
      return false
    end
  end
  return true
end

-- A caller that was given one exclusive key may begin with the call. The call has its fencing tokens, the time by the server's clock, and for
-- how long it has the key. It has none of these if the fence is gone, or memory is full.
local function beginning(fence, token, claim)
  local stored = not mode_of(token) and fence_at(fence)
  if not stored or stored == 0 then return '' end
  local first = math.max(now, stored + 1)
  local set = redis.pcall('SET', fence, text(first + ${String(RESERVED_TOKENS - 1)}), 'XX', 'KEEPTTL')
  return set and set.ok and table.concat({ '', text(first), text(now), claim }, ':') or ''
end

-- It leaves all lines first, because the rest may fail.
local function claim_all(member, names, fence, token, claim, channel, record, counts)
  for i = 1, #names, 3 do redis.pcall('ZREM', names[i + 1], member) end
  if record then redis.pcall('DEL', record) end
  for i = 1, #names, 3 do
    if not pcall(add_holder, names[i], names[i + 2], token, claim, phase_of(names[i], names[i + 2], mode_of(token))) then return false end
  end
  local begins = counts and not record and beginning(fence, token, claim) or ''
  for i = 1, #names, 3 do
    -- One call for each key: a process that has forgotten the place knows only the keys of its calls, and releases those.
    notify(channel, token .. ' 0' .. begins .. ' ' .. names[i])
    notify_next(names[i], names[i + 1], names[i + 2], claim, claim, counts, { [channel] = true })
  end
  return true
end

-- The first in line is called, and asks for its keys. If it does not ask in time it is passed over, and the next ones ask. A caller that
-- asks for the key calls it too, in case that no script has, but not repeatedly.
local function call_first(main, queue, holders, token, channel, record, counts, is_asked_for)
  local left_ms = redis.pcall('PTTL', record)
  local most = is_asked_for and ${String(PLACE_LIFE_MS - CALLED_LIFE_MS)} or ${String(PLACE_LIFE_MS)}
  if type(left_ms) ~= 'number' or left_ms <= ${String(CALLED_LIFE_MS)} or left_ms > most then return end
  redis.pcall('PEXPIRE', record, ${String(CALLED_LIFE_MS)})
  notify(channel, token .. ' 0 ' .. main)
  notify_next(main, queue, holders, ${String(CALLED_LIFE_MS)}, ${String(CALLED_LIFE_MS)}, counts, { [channel] = true })
end

local function grant_next(main, fence, queue, holders, mine, counts, before)
  local overtaken = 0
  for _ = 1, ${String(MOST_PASSED)} do
    local entry = redis.pcall('ZRANGE', queue, overtaken, overtaken, 'WITHSCORES')
    if entry.err or not entry[1] then return end
    local member, ticket = entry[1], tonumber(entry[2])
    local token, claim, channel, record = place_of(member)
    if token and token == mine or before and ticket >= before then return end
    local blocked = token and in_the_way(main, holders, token)
    if blocked and not is_marker(blocked) then return end
    local is_here = token and is_there(channel, counts) and (not record or redis.pcall('EXISTS', record) == 1)
    local upgrades = token and kind_of(token) == 'upgrade'
    if upgrades and not holds(main, holders, upgradeable(token)) then is_here = false end
    local can = true
    if is_here and claim == '0' and not blocked and not upgrades then
      call_first(main, queue, holders, token, channel, record, counts, before)
      can = false
    end
    local names = is_here and { main, queue, holders }
    if is_here and record and can and not blocked and not barred[token] then
      names = keys_of(record) or names
      can = can_have(names, main, token, ticket, counts)
    end
    -- A dead process does not keep others from joining the holders.
    if not is_here then redis.pcall('ZREM', queue, member)
    elseif blocked then return
    elseif upgrades then
      -- It holds the key meanwhile, so it needs no claim: it asks.
      notify(channel, token .. ' 0 ' .. main)
      return
    elseif not can or barred[token] then
      if keeps_for(ticket, claim) > 0 or overtaken == ${String(MOST_OVERTAKEN)} or looked_at > ${String(MOST_LOOKED_AT)} then return end
      overtaken = overtaken + 1
    elseif not claim_all(member, names, fence, token, claim, channel, record, counts) then return
    elseif not mode_of(token) then return end
  end
  -- This many processes have died. The remaining ones ask now, and the script that they run continues from here.
  notify_next(main, queue, holders, 0, 0, counts, {})
end
`;

/**
 * Who decides on the line: one Redis, which knows who listens; a Cluster, where that depends on the channel; or none of several masters.
 */
export type LineMode = 'standalone' | 'cluster' | 'quorum';

/** The argument of scripts: nothing in the most frequent case. */
export const lineArgument = (mode: LineMode): string => (mode === 'standalone' ? '' : mode);
