import { MARK } from '../../owner-token.js';

/** How many one script passes over at the most, in order to find somebody who is there: it blocks the server meanwhile. */
export const MOST_PASSED = 1_000;

/** How many are told when to look if those before them do not use what they were given: so many processes may be frozen in a row. */
const MOST_WARNED = 3;

/** Of how many it asks, at the most, whether they are there, to find those. */
export const MOST_ASKED = 10;

/** How many processes in line hear of one release over several masters; the others are told by the next one, or look by themselves. */
const MOST_HEARD = 100;

/** Over several masters: how long after the one before it each in line looks. All at once they would split the votes. In ms. */
const TURN_MS = 10;

/**
 * The line at a key: a sorted set of places, by ticket. A place is `<token> <ms of a claim> <channel>`. One for several keys stands in
 * the line of each of them, with one ticket, and goes on with `\n<queue of its first key>`: under that name and the token stands the list of
 * its keys (`main, queue, holders` of each), which expires when nobody looks any more. Of keys in several slots the claim is `0`. Over
 * several masters a place is `<id of the line in its process> 0 <channel>`, at one key.
 *
 * Gives a script
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
 */
export const PLACES = `
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
