--[[
  The line at a key: a sorted set of places, by ticket. A place is `<token> <ms of a claim> <channel>`. Over several
  masters it is `<id of the line in its process> 0 <channel>`. A caller of several keys stands in one line at a time.

  Gives a script

  `dequeue(queue, member)`: takes a place out of the line.

  `look_up(list, counts)`: finds out at once which processes of a list of places are alive, for `is_there`.

  `notify(channel, to, ms, main)`: a message is `<to> <ms> <main>`, and a hint: it names the tail of a token, never an
  owner token, and nothing is granted, lost or ended because of it.

  `notify_next(main, queue, holders, ms, step, counts, seen)`: notifies the first in line, of different processes, to
  ask in `ms`, each by `step` later than the one before. Without `ms`, they ask when the holders of the key are done,
  as far as that is known.

  `notify_all(main, queue)`: for a key on one of several masters, where no single line decides. All ask, one after the
  other. Places whose process is not subscribed are removed.

  A process is alive when it is subscribed. PUBSUB NUMSUB shows that; the reply of PUBLISH also counts those that
  subscribe to every channel. On a Cluster a channel with a hash tag is served where the key is, by sharded pub/sub,
  and counted there. On a channel without one, neither command sees subscribers at other nodes (`counts` is false): a
  process that died costs its claim.
]]
-- How many places a script reads at once.
local MOST_PLACES = 500
-- How many callers are notified to ask later, in case those before them do not use their claims. So many processes may be frozen in a
-- row.
local MOST_WARNED = 3
-- To find those, it looks at this many places first, and at MOST_PLACES if all of their processes have died.
local MOST_ASKED = 10
-- How many processes in line are notified of one release over several masters. The others are notified by the next release, or ask by
-- themselves.
local MOST_HEARD = 100
-- Over several masters: how long after the one before it each caller in line asks, in ms. All at once they would split the votes.
local TURN_MS = 10

local function is_sharded(channel) return string.find(channel, '{', 1, true) end

local function place_of(member) return string.match(member, '^(%S+) (%d+) (.+)$') end

local asked = {}
local function subscribers(command, channels)
  if not channels[1] then return end
  local reply = redis.pcall('PUBSUB', command, unpack(channels))
  for i, channel in ipairs(channels) do asked[channel] = reply.err ~= nil or tonumber(reply[2 * i]) > 0 end
end

local function look_up(list, counts)
  local plain, sharded = {}, {}
  for _, each in ipairs(list) do
    -- Tickets between the places are none.
    local _, _, channel = place_of(each)
    if channel and asked[channel] == nil then
      local kind = is_sharded(channel) and sharded or plain
      asked[channel] = true
      if counts or kind == sharded then kind[#kind + 1] = channel end
    end
  end
  subscribers('NUMSUB', plain)
  subscribers('SHARDNUMSUB', sharded)
end

local function is_there(channel, counts)
  if asked[channel] == nil then look_up({ '- 0 ' .. channel }, counts) end
  return asked[channel]
end

local function notify(channel, to, ms, main)
  -- As tailOf does.
  local tail = string.sub(string.match(to, '^holdfast:([^:*]*)') or to, -8)
  redis.pcall(is_sharded(channel) and 'SPUBLISH' or 'PUBLISH', channel, table.concat({ tail, ms, main }, ' '))
end

local function members(queue, count)
  local list = redis.pcall('ZRANGE', queue, 0, count - 1)
  return list.err and {} or list
end

-- A request that was carried out late may have another channel.
local function dequeue(queue, member)
  if redis.pcall('ZREM', queue, member) == 1 then return end
  local token = place_of(member)
  for _, other in ipairs(members(queue, MOST_ASKED)) do
    if place_of(other) == token then return redis.pcall('ZREM', queue, other) end
  end
end

-- Raises the error of Redis: who goes on reading until no dead place is left would not end.
local function remove(queue, list)
  if list[1] then redis.call('ZREM', queue, unpack(list)) end
end

local function notify_next(main, queue, holders, ms, step, counts, seen)
  local warned = 0
  for _, most in ipairs({ MOST_ASKED, MOST_PLACES }) do
    local list = members(queue, most)
    look_up(list, counts)
    for _, other in ipairs(list) do
      local token, _, channel = place_of(other)
      if token and not seen[channel] and is_there(channel, counts) then
        seen[channel] = true
        notify(channel, token, ms and ms + warned * step or math.max(0, left(main, holders, token)), main)
        warned = warned + 1
        if warned == MOST_WARNED then return end
      end
    end
    if warned > 0 or #list < most then return end
  end
end

local function notify_all(main, queue)
  local heard, count, in_ms, from = {}, 0, 0, 0
  while count < MOST_HEARD do
    local list, dead = redis.pcall('ZRANGE', queue, from, from + MOST_PLACES - 1), {}
    if list.err then return end
    for _, member in ipairs(list) do
      if count == MOST_HEARD then break end
      local id, _, channel = place_of(member)
      -- An error (forbidden) does not show which processes are subscribed.
      if not id or redis.pcall('PUBLISH', channel, id .. ' ' .. in_ms .. ' ' .. main) == 0 then
        dead[#dead + 1] = member
      else
        in_ms = in_ms + TURN_MS
        from = from + 1
        if not heard[channel] then
          heard[channel] = true
          count = count + 1
        end
      end
    end
    if not pcall(remove, queue, dead) or #list < MOST_PLACES then return end
  end
end
