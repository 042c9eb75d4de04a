import { MARK } from '../../owner-token.js';
import { FIRST_KEPT_MS, LONGEST_KEPT_MS, OPEN_MS, PATIENCE_MS } from '../../overtaking.js';

/** How many one script passes over at the most, in order to find somebody who is there: it blocks the server meanwhile. */
const MOST_PASSED = 1_000;

/** How many are told when to look if those before them do not use what they were given: so many processes may be frozen in a row. */
const MOST_WARNED = 3;

/** Of how many it asks, at the most, whether they are there, to find those. */
export const MOST_ASKED = 10;

/** How many callers of several keys may be overtaken at a key in one script. */
const MOST_OVERTAKEN = 100;

/** How many processes in line hear of one release over several masters; the others are told by the next one, or look by themselves. */
const MOST_HEARD = 100;

/** Over several masters: how long after the one before it each in line looks. All at once they would split the votes. In ms. */
const TURN_MS = 10;

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
  while age >= window do
    age, window = age - window - ${String(OPEN_MS)}, math.min(2 * window, ${String(LONGEST_KEPT_MS)})
  end
  return age >= 0 and math.ceil(window - age) or 0
end`;

/**
 * The line at a key: a sorted set of places, by ticket. A place is `<token> <ms of a claim> <channel>`. One for several keys stands in
 * the line of each of them, with one ticket, and goes on with `\n<queue of its first key>`: under that name and the token stands the list of
 * its keys (`main, queue, holders` of each), which expires when nobody looks any more. Of keys in several slots the claim is `0`. Over
 * several masters a place is `<id of the line in its process> 0 <channel>`, at one key.
 *
 * Who gets a free key: the oldest ticket whose keys it can have all. Either all of them are given to it in this script, or none, so that
 * nobody is given one key while it waits for another: callers who hand keys on to each other could go round in a circle indefinitely. One
 * that cannot have all is overtaken at first; then its free keys are kept for it, in windows (`overtaking.ts`).
 *
 * No script sees keys in several slots. There a place keeps its keys from the start: it is called when it is the first at one of them, and
 * asks for all, slot by slot. Tickets are the same in all slots, so the oldest of all is the first at each of its keys.
 *
 * Gives a script
 *
 * `grant_next(main, queue, holders, mine, counts, before)`: a free key goes to the first in line who can have all of its keys and is there, and
 * to those behind it who may hold it together with that one, as claims: their tokens with a short TTL, which they make leases by acquiring
 * with those tokens. Told are they, and the next ones, of other processes, who have to look again if a claim is not used: each a claim
 * later than the one before, so that several may be frozen in a row. Nothing when the line is empty, when the key is held so that the
 * first may not have it, and no further than to `mine` or, where somebody asks for the key, the ticket `before`. Every script that finds
 * or makes room at a key calls it, so that whoever does, the first in line gets it. Needs `HOLDERS`.
 *
 * `kept_for(queue, mine, before, counts)`: for how many ms yet somebody with an older ticket than `before` keeps others from a key that is
 * free; nil if nobody does.
 *
 * `record_of(member)`: the name of the list of its keys, or nil. `dequeue(queue, member)`: takes it out of the line.
 *
 * `notify_next(main, queue, holders, ms, step, counts, seen)`: tells the first in line, of different processes, to look again in `ms`, each by
 * `step` later than the one before, or, without `ms`, when those who hold the key are done as far as that is known.
 *
 * `notify_all(main, queue)`: for a key on one of several masters, where no single line decides: all look again, one after the other, and
 * those who would hold it together at once. Who hears nothing is taken out.
 *
 * A process is there when it listens. PUBSUB NUMSUB knows; what PUBLISH answers also counts those who listen to everything. On a
 * Cluster a channel with a hash tag is heard where the key is, by sharded pub/sub, and counted there. Of one without, neither knows of
 * subscribers at other nodes (`counts` is false): a process that died costs its claim.
 *
 * Each write for itself, and what Redis refuses when memory is full last.
 */
export const LINE = `
local function is_sharded(channel) return string.find(channel, '{', 1, true) end

local asked = {}
local function is_there(channel, counts)
  local sharded = is_sharded(channel)
  if not counts and not sharded then return true end
  if asked[channel] == nil then
    local reply = redis.pcall('PUBSUB', sharded and 'SHARDNUMSUB' or 'NUMSUB', channel)
    asked[channel] = reply.err ~= nil or tonumber(reply[2]) > 0
  end
  return asked[channel]
end

local function notify(channel, message)
  redis.pcall(is_sharded(channel) and 'SPUBLISH' or 'PUBLISH', channel, message)
end

local function members(queue, count)
  local list = redis.pcall('ZRANGE', queue, 0, count - 1)
  return list.err and {} or list
end

local function place_of(member)
  local token, claim, channel, first = string.match(member, '^(%S+) (%d+) ([^\\n]+)\\n?(.*)$')
  return token, claim, channel, first and first ~= '' and first .. ':' .. token or nil
end

local function record_of(member) return select(4, place_of(member)) end

-- Answers whether there was a place to leave. A process that was called for a place that it has forgotten knows no more than the token.
local function dequeue(queue, member)
  if redis.pcall('ZREM', queue, member) == 1 then return true end
  local token = place_of(member)
  for _, other in ipairs(members(queue, ${String(MOST_ASKED)})) do
    if place_of(other) == token then
      local record = record_of(other)
      if record then redis.pcall('DEL', record) end
      return redis.pcall('ZREM', queue, other) == 1
    end
  end
  return false
end

-- main, queue, holders of each key; nil when its caller looks no more.
local function keys_of(record)
  local list, names = redis.pcall('GET', record), {}
  if type(list) ~= 'string' then return nil end
  for name in string.gmatch(list, '[^\\n]+') do names[#names + 1] = name end
  return names
end

local function notify_next(main, queue, holders, ms, step, counts, seen)
  local warned = 0
  for _, other in ipairs(members(queue, ${String(MOST_ASKED)})) do
    local token, _, channel = place_of(other)
    if token and not seen[channel] and is_there(channel, counts) then
      seen[channel] = true
      local in_ms = ms and ms + warned * step or math.max(0, left(main, holders, token))
      notify(channel, token .. ' ' .. text(in_ms) .. ' ' .. main)
      warned = warned + 1
      if warned == ${String(MOST_WARNED)} then break end
    end
  end
end

${KEEPS_FOR}
-- Who keeps a key from others, of all in its line the first: looked for once.
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

-- Whether it can have its other keys, too. Who cannot is not asked again in this script, which gives keys away and frees none meanwhile.
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

-- Out of all lines first, for what follows may fail.
local function claim_all(member, names, token, claim, channel, record, counts)
  for i = 1, #names, 3 do redis.pcall('ZREM', names[i + 1], member) end
  if record then redis.pcall('DEL', record) end
  for i = 1, #names, 3 do
    if not pcall(add_holder, names[i], names[i + 2], token, claim, phase_of(names[i], names[i + 2], mode_of(token))) then return false end
  end
  notify(channel, token .. ' 0 ' .. names[1])
  for i = 1, #names, 3 do
    notify_next(names[i], names[i + 1], names[i + 2], claim, claim, counts, { [channel] = true })
  end
  return true
end

-- It asks by itself. Who does not ask in time is passed over, and the next ones look then. Whoever asks for the key calls it as well, in
-- case that nobody has, but not again and again.
local function call_first(main, queue, holders, token, channel, record, counts, is_asked_for)
  local left_ms = redis.pcall('PTTL', record)
  local most = is_asked_for and ${String(PLACE_LIFE_MS - CALLED_LIFE_MS)} or ${String(PLACE_LIFE_MS)}
  if type(left_ms) ~= 'number' or left_ms <= ${String(CALLED_LIFE_MS)} or left_ms > most then return end
  redis.pcall('PEXPIRE', record, ${String(CALLED_LIFE_MS)})
  notify(channel, token .. ' 0 ' .. main)
  notify_next(main, queue, holders, ${String(CALLED_LIFE_MS)}, ${String(CALLED_LIFE_MS)}, counts, { [channel] = true })
end

local function grant_next(main, queue, holders, mine, counts, before)
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
    local can = true
    if is_here and claim == '0' and not blocked then
      call_first(main, queue, holders, token, channel, record, counts, before)
      can = false
    end
    local names = is_here and { main, queue, holders }
    if is_here and record and can and not blocked and not barred[token] then
      names = keys_of(record) or names
      can = can_have(names, main, token, ticket, counts)
    end
    -- One who died keeps nobody from joining those who hold it together.
    if not is_here then redis.pcall('ZREM', queue, member)
    elseif blocked then return
    elseif not can or barred[token] then
      if keeps_for(ticket, claim) > 0 or overtaken == ${String(MOST_OVERTAKEN)} or looked_at > ${String(MOST_LOOKED_AT)} then return end
      overtaken = overtaken + 1
    elseif not claim_all(member, names, token, claim, channel, record, counts) then return
    elseif not mode_of(token) then return end
  end
  -- So many have died: those who are left look now, and the script that they run goes on from here.
  notify_next(main, queue, holders, 0, 0, counts, {})
end

local function notify_all(main, queue)
  local heard, count, in_ms, previous = {}, 0, 0, nil
  for _, member in ipairs(members(queue, ${String(MOST_PASSED)})) do
    if count == ${String(MOST_HEARD)} then break end
    local id, _, channel = place_of(member)
    local mode = id and mode_of('${MARK}' .. id)
    if previous and not (mode and mode == previous) then in_ms = in_ms + ${String(TURN_MS)} end
    -- An error (forbidden) says nothing about who listens.
    if not id or redis.pcall('PUBLISH', channel, id .. ' ' .. in_ms .. ' ' .. main) == 0 then
      redis.pcall('ZREM', queue, member)
    else
      previous = mode or 'exclusive'
      if not heard[channel] then
        heard[channel] = true
        count = count + 1
      end
    end
  end
end
`;

/**
 * Who decides on the line: one Redis, which knows who listens; a Cluster, where that depends on the channel; or none of several masters.
 */
export type LineMode = 'standalone' | 'cluster' | 'quorum';

/** As scripts are told: nothing in the most frequent case. */
export const lineArgument = (mode: LineMode): string => (mode === 'standalone' ? '' : mode);
