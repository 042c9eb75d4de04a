/** How many one script passes over at the most, in order to find somebody who is there: it blocks the server meanwhile. */
const MOST_PASSED = 1_000;

/** How many are told when to look if those before them do not use what they were given: so many processes may be frozen in a row. */
const MOST_WARNED = 3;

/** Of how many it asks, at the most, whether they are there, to find those. */
export const MOST_ASKED = 10;

/** How many processes in line hear of one release over several masters; the others are told by the next one, or look by themselves. */
const MOST_HEARD = 100;

/**
 * The line at a key: a sorted set of members `<token> <ms of a claim> <channel>`, by ticket; over several masters
 * `<id of the line in its process> 0 <channel>`. Gives a script
 *
 * `give(main, queue, holders, mine, counts)`: a key goes to the first in line who is there, and to those behind it who may hold it
 * together with that one, as claims: their tokens with a short TTL, which they make leases by acquiring with those tokens. Told are they,
 * and the next ones, of other processes, who have to look again if a claim is not used: each a claim later than the one before, so that
 * several may be frozen in a row. Nothing when the line is empty, when the key is held so that the first may not have it, or when that is
 * `mine`. Every script that finds or makes room at a key calls it, so that whoever does, the first in line gets it. Needs `HOLDERS`.
 *
 * `warn(main, queue, holders, ms, step, counts, seen)`: tells the first in line, of different processes, to look again in `ms`, each by
 * `step` later than the one before, or, without `ms`, when those who hold the key are done as far as that is known.
 *
 * `tell_all(main, queue)`: for a key on one of several masters, where no single line decides: all look again.
 *
 * A process is there when it listens. PUBSUB NUMSUB knows; what PUBLISH answers also counts those who listen to everything. On a
 * Cluster a channel with a hash tag is heard where the key is, by sharded pub/sub, and counted there. Of one without, neither knows of
 * subscribers at other nodes (`counts` is false): a process that died costs its claim.
 *
 * Each write for itself, and what Redis refuses when memory is full last.
 */
export const LINE = `
local function is_sharded(channel) return string.find(channel, '{', 1, true) end

local function is_there(channel, counts)
  local sharded = is_sharded(channel)
  if not counts and not sharded then return true end
  local reply = redis.pcall('PUBSUB', sharded and 'SHARDNUMSUB' or 'NUMSUB', channel)
  return reply.err ~= nil or tonumber(reply[2]) > 0
end

local function call(channel, message)
  redis.pcall(is_sharded(channel) and 'SPUBLISH' or 'PUBLISH', channel, message)
end

local function members(queue, count)
  local list = redis.pcall('ZRANGE', queue, 0, count - 1)
  return list.err and {} or list
end

local function warn(main, queue, holders, ms, step, counts, seen)
  local warned = 0
  for _, other in ipairs(members(queue, ${String(MOST_ASKED)})) do
    local token, _, channel = string.match(other, '^(%S+) (%d+) (.+)$')
    if token and not seen[channel] and is_there(channel, counts) then
      seen[channel] = true
      local in_ms = ms and ms + warned * step or math.max(0, left(main, holders, token))
      call(channel, token .. ' ' .. text(in_ms) .. ' ' .. main)
      warned = warned + 1
      if warned == ${String(MOST_WARNED)} then break end
    end
  end
end

local function give(main, queue, holders, mine, counts)
  for _ = 1, ${String(MOST_PASSED)} do
    local first = members(queue, 1)[1]
    if not first then return end
    local token, claim, channel = string.match(first, '^(%S+) (%d+) (.+)$')
    if token and token == mine then return end
    local blocked = token and in_the_way(main, holders, token)
    if blocked and not is_marker(blocked) then return end
    local there = token and is_there(channel, counts)
    -- One who died keeps nobody from joining those who hold it together.
    if blocked and there then return end
    redis.pcall('ZREM', queue, first)
    if there then
      if not pcall(put, main, holders, token, claim, phase_of(main)) then return end
      call(channel, token .. ' 0 ' .. main)
      warn(main, queue, holders, claim, claim, counts, { [channel] = true })
      if not mode_of(token) then return end
    end
  end
end

local function tell_all(main, queue)
  local told, heard = 0, 0
  for _, member in ipairs(members(queue, ${String(MOST_PASSED)})) do
    if heard == ${String(MOST_HEARD)} then break end
    local id, _, channel = string.match(member, '^(%S+) (%d+) (.+)$')
    told = told + 1
    -- An error (forbidden) says nothing about who listens.
    if id and redis.pcall('PUBLISH', channel, id .. ' 0 ' .. main) ~= 0 then heard = heard + 1 end
  end
  if told > 0 then redis.pcall('ZREMRANGEBYRANK', queue, 0, told - 1) end
end
`;

/** How a script treats the line: by one of several masters, on one Redis that knows who listens, or on a Cluster, where that depends on the channel. */
export type LineMode = 'many' | 'one' | 'blind';
