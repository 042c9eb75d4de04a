import { MARK } from '../../owner-token.js';

/**
 * How many places one script passes over at most, in order to find one that is alive: it blocks the server meanwhile.
 */
export const MOST_PASSED = 1_000;

/**
 * How many callers are notified to ask later, in case those before them do not use their claims: this many processes
 * may be frozen in a row.
 */
const MOST_WARNED = 3;

/** To find those, it asks for at most this many whether they are alive. */
export const MOST_ASKED = 10;

/**
 * How many processes in line are notified of one release over several masters. The others are notified by the next
 * release, or ask by themselves.
 */
const MOST_HEARD = 100;

/**
 * Over several masters: how long after the one before it each caller in line asks, in ms. All at once they would split
 * the votes.
 */
const TURN_MS = 10;

/**
 * The line at a key: a sorted set of places, by ticket. A place is `<token> <ms of a claim> <channel>`. A place for
 * several keys stands in the line of each of them, with one ticket, and continues with `\n<queue of its first key>`.
 * Under that name and the token stands the list of its keys (`main, queue, holders` of each). The list expires when its
 * callers no longer ask. Of keys in several slots the claim is `0`. Over several masters a place is
 * `<id of the line in its process> 0 <channel>`, at one key.
 *
 * Gives a script
 *
 * `record_of(member)`: the name of the list of its keys, or nil. `dequeue(queue, member)`: takes it out of the line.
 *
 * `notify_next(main, queue, holders, ms, step, counts, seen)`: notifies the first in line, of different processes, to
 * ask in `ms`, each by `step` later than the one before. Without `ms`, they ask when the holders of the key are done,
 * as far as that is known.
 *
 * `notify_all(main, queue)`: for a key on one of several masters, where no single line decides. All ask, one after the
 * other; those that would hold the key together ask at once. Places whose process is not subscribed are removed.
 *
 * A process is alive when it is subscribed. PUBSUB NUMSUB shows that; the reply of PUBLISH also counts those that
 * subscribe to every channel. On a Cluster a channel with a hash tag is served where the key is, by sharded pub/sub,
 * and counted there. Of a channel without one, neither command sees subscribers at other nodes (`counts` is false): a
 * process that died costs its claim.
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

-- Returns whether there was a place to leave. A process that was called for a place that it has forgotten knows only the token.
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

-- main, queue, holders of each key; nil when its caller no longer asks.
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
    -- An error (forbidden) does not show which processes are subscribed.
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
