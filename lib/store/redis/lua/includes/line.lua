--[[
  The line at a key, with the places of `places.lua`.

  Gives a script

  `grant_next(main, queue, holders, mine, counts, before)`: grants a free key to the first in line that is alive.
  Callers behind it that may hold the key together with it are granted it too. Grants are claims: their tokens with a
  short TTL. A caller makes its claim a lease by acquiring with that token.

  It notifies the callers with claims, and the next callers of other processes, which have to ask again if a claim is
  not used. Each of these asks one claim later than the one before, so that several may be frozen in a row.

  It grants nothing when the line is empty, or when the first may not have the key because of its holder. It goes no
  further than to `mine`, or, for a caller that asks for the key, to the ticket `before`. Every script that finds or
  makes room at a key calls it, so the first in line always gets it. However many dead processes stand before that
  one, it removes their places: each costs one place of one reply, once.

  `kept_for(queue, mine, before)`: for how many ms an older ticket than `before` keeps other callers from joining the
  holders; nil if none does. Needs `grant_next` to be called first, which removes the places of dead processes.

  Each write is done on its own. The writes that Redis refuses when its memory is full come last. If Redis refuses all
  writes, `grant_next` raises its error: nobody can be granted the key, and no place of a dead process goes away.
]]
-- @include holders
-- @include places
-- How many callers that hold a key together one script admits. The remaining ones ask again.
local MOST_ADMITTED = 1000
-- A caller behind a live one asks again after this time at the latest. In ms.
local KEPT_MS = 1000

local function kept_for(queue, mine, before)
  local first = redis.pcall('ZRANGE', queue, 0, 0, 'WITHSCORES')
  if first.err or not first[1] or place_of(first[1]) == mine or tonumber(first[2]) >= before then return nil end
  return KEPT_MS
end

-- The waiter leaves the line first, because the rest may fail.
local function claim(member, main, queue, holders, last)
  local token, ms, channel = place_of(member)
  remove(queue, { member })
  -- With older data, a place comes back whose caller has the key by now: for longer than a claim.
  if holds(main, holders, token) then return true end
  if not pcall(add_holder, main, holders, token, ms, phase_of(main, holders, mode_of(token))) then return false end
  notify(channel, token, 0, main)
  last.ms = ms
  last.channel = channel
  return true
end

-- `last` gets the ms and the channel of the last claim.
local function claim_next(main, queue, holders, mine, counts, before, last)
  -- The first one is nearly always alive.
  local size, admitted = 1, 0
  while true do
    local list, dead = redis.pcall('ZRANGE', queue, 0, size - 1, 'WITHSCORES'), {}
    if list.err then return end
    for i = 1, #list, 2 do
      local member, ticket = list[i], tonumber(list[i + 1])
      local token, _, channel = place_of(member)
      local is_far = token and token == mine or before and ticket >= before
      local blocked = token and not is_far and in_the_way(main, holders, token)
      if is_far or blocked and not is_marker(blocked) then return remove(queue, dead) end
      if i == 1 then look_up(list, counts) end
      -- A dead process does not keep others from joining the holders.
      if not token or not is_there(channel, counts) then
        dead[#dead + 1] = member
      else
        remove(queue, dead)
        dead = {}
        if blocked or not claim(member, main, queue, holders, last) or not mode_of(token) then return end
        admitted = admitted + 1
        if admitted == MOST_ADMITTED then
          last.ms = 0
          last.channel = ''
          return
        end
      end
    end
    remove(queue, dead)
    if #list < 2 * size then return end
    size = MOST_PLACES
  end
end

local function grant_next(main, queue, holders, mine, counts, before)
  local last = {}
  claim_next(main, queue, holders, mine, counts, before, last)
  if last.ms then notify_next(main, queue, holders, last.ms, last.ms, counts, { [last.channel] = true }) end
end
