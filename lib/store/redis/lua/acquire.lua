--[[
  KEYS    main, fence, queue, holders, limit of each key; with a guard also its epoch key, last
  ARGV    1 token
          2 ttl in ms
          3 ms for which a fence outlives its lease
          as far as there are any, each of them may be '':
          4 how the line is decided: 'cluster', 'quorum', else standalone
          5 place to stand in line at, at the busy key
          6 ticket it had before, at the first key
          7 fencing token proposed by the client
          8 longest TTL in ms of the restart guard
          9 fencing token of a phase that the caller may join, even while other callers wait
         10 ms for which it holds the keys before the busy one, if it is refused at a later key than the first
         11 ms after which it does not, because the busy key has been held for that long
         12 how many of the other keys come before the first one in the order of all processes
  Returns {1, clock in us, first fencing token, number of others in line, limit of other holders, if it differs}
          {0, clock, position of the busy key, holder's PTTL, holder's token or '' for a key that is kept, for that long,
           for an earlier caller, ticket when standing in line or '', its fence, 1 if the keys before it are held,
           limit of other holders}
          {-1, clock, us of quarantine}
]]
-- @include clock
-- @include fence
-- @include quarantine
-- @include holders
-- @include line
-- @include proposal-bound

local token, ttl, keep, line = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] or ''
local member, ticket, proposal, max_ttl = ARGV[5] or '', ARGV[6] or '', tonumber(ARGV[7]), tonumber(ARGV[8])
local joins = tonumber(ARGV[9])
local last = max_ttl and #KEYS - 1 or #KEYS

-- Callers that join holders of a key get the fencing token of the first one.
local function fencing_token(highest, joined)
  if joined then return joined end
  local first = math.max(now, highest + 1)
  if proposal and proposal <= now + PROPOSAL_BOUND_US then first = math.max(first, proposal) end
  return first
end

-- The fence must outlive the lease by as much as it is ahead of this server's clock; that of a phase may be far behind it.
local function raise_fence(fence, last, least)
  redis.call('SET', fence, last, 'PX', math.max(ttl + keep + math.max(0, math.ceil((last + 1 - now) / 1000)), least))
end

local mode, counts, in_order = mode_of(token), line == '', line ~= 'quorum'

-- How long a line outlives the lock at least, however short a fence lives: those in line ask again within 5 s. In ms.
local LINE_MS = 15000

-- Enters the line of the busy key. Over several masters no ticket counts. At another key than the first it comes anew.
local function enqueue(busy, pttl)
  if member == '' then return '' end
  local queue = KEYS[busy + 2]
  if busy > 1 or ticket == '' then
    local top = redis.pcall('ZREVRANGE', queue, 0, 0, 'WITHSCORES')
    ticket = text(math.max(now, (tonumber(top[2]) or 0) + 1))
  end
  -- NX: a caller that tries again keeps its place. The line outlives the lock: otherwise a holder that dies would end it.
  local added = redis.pcall('ZADD', queue, 'NX', ticket, member)
  if type(added) ~= 'number' then return '' end
  redis.pcall('PEXPIRE', queue, math.max(math.max(pttl, 0) + math.max(keep, LINE_MS), redis.pcall('PTTL', queue)))
  return ticket
end

-- A caller that missed its claim comes back with its old ticket: it is still before all later callers. At other keys it is the last.
local function before(i) return i == 1 and tonumber(ticket) or math.huge end

-- The holder that blocks a key, and for how many ms; '' while the key is kept for earlier callers.
local function holder_of(i, has_line)
  local main, queue, holders = KEYS[i], KEYS[i + 2], KEYS[i + 3]
  if holds(main, holders, token) then return nil end
  local holder = in_the_way(main, holders, token)
  if holder then return holder, left(main, holders, token) end
  -- The token of a holder of several keys is larger than that of an earlier phase, and smaller than that of any later one.
  if not has_line or joins and (phase_of(main, holders, mode) or math.huge) <= joins then return nil end
  local together = redis.call('GET', main)
  local ms = in_order and kept_for(queue, token, before(i))
  if ms then return together or '', together and left(main, holders, token) or ms end
  return nil
end

local function grant_next_at(i, mine, before) grant_next(KEYS[i], KEYS[i + 2], KEYS[i + 3], mine, counts, before) end

local keep_ms, limit_ms, before_first = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
-- As a claim: no caller works under it, so the fence stays.
local function keep_key(j)
  local kept = pcall(add_holder, KEYS[j], KEYS[j + 3], token, keep_ms, phase_of(KEYS[j], KEYS[j + 3], mode))
  return kept
end

-- Earlier callers are granted what they can have at every key, before any key is checked for this caller.
local has_line = {}
for i = 1, last, 5 do
  has_line[i] = redis.call('EXISTS', KEYS[i + 2]) == 1
  if has_line[i] and in_order then grant_next_at(i, token, before(i)) end
end

local highest, others, joined = 0, 0, mode and math.huge or nil
for i = 1, last, 5 do
  local main, fence, queue, holders = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  local holder, pttl = holder_of(i, has_line[i])
  if holder then
    local place = enqueue(i, pttl)
    local since = fence_at(fence) or 0
    -- Refused at its first key, it keeps what it holds. At a later one, it keeps the keys before that one, if it asks for that, or none.
    local kept = keep_ms and in_order and i > 1 and place ~= '' and now - since < limit_ms * 1000
    for j = 1, i > 1 and last or 0, 5 do
      if kept and j < i and (j > 1 or before_first <= (i + 4) / 5 - 2) then kept = keep_key(j)
      elseif j ~= i and (remove_holder(KEYS[j], KEYS[j + 3], token) or j < i and has_line[j]) and in_order then pcall(grant_next_at, j, token) end
    end
    return { 0, now, (i + 4) / 5, pttl, string.match(holder, '^%S*'), place, since, kept and 1 or 0, other_limits[token] }
  end
  if has_line[i] then
    if member ~= '' then redis.pcall('ZREM', queue, member) end
    local waiting = redis.pcall('ZCARD', queue)
    if type(waiting) == 'number' then others = others + waiting end
  end
  local stored, damaged = fence_at(fence)
  if damaged then return damaged end
  highest = math.max(highest, stored)
  if joined then
    local phase = phase_of(main, holders, mode)
    joined = phase and (joined == math.huge or joined == phase) and phase or nil
  end
end
local quarantined = max_ttl and quarantine(KEYS[#KEYS], max_ttl) or 0
if quarantined > 0 then return { -1, now, quarantined } end

local first = fencing_token(highest, joined)
for i = 1, last, 5 do
  raise_fence(KEYS[i + 1], math.max(first, joined and highest or 0), fence_life(KEYS[i + 1], token, 0))
end
for i = 1, last, 5 do
  local main, holders = KEYS[i], KEYS[i + 3]
  add_holder(main, holders, token, ttl, mode and phase_of(main, holders, mode) or first)
end
-- The callers behind this one may be able to hold the keys together with it.
if mode and others > 0 then
  for i = 1, last, 5 do pcall(grant_next_at, i, '') end
end
return { 1, now, first, others, other_limits[token] }
