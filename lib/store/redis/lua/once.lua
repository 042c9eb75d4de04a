--[[
  KEYS    main, once
  ARGV    1 what to do
          2 the lease's token
          3 owner of the attempt
          4 ms for which the record is kept
          with begin
          5 number of attempts there may be
          6 ms for which it is recorded that none are left
          with keep, done, failed, final, returned
          5 number of the attempt (missing for one that is returned: its owner may not know it)
          6 value or error
  Returns to begin
          {1, attempt} begun
          {2, attempts, value} done
          {3, attempts, error} none left
          {0, attempts} the caller may not begin
          to every other
          {1} accepted, {0} superseded
]]
-- @include fence

local main, once = KEYS[1], KEYS[2]
local what, token, owner, life, number, detail = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local known = redis.call('HMGET', once, 'state', 'attempt', 'owner', 'end', 'text')
local state, whose, ended, text = known[1], known[3], known[4], known[5] or ''
local attempt = tonumber(known[2] or 0)
if not (attempt and attempt >= 0 and attempt <= LARGEST_FENCE and attempt % 1 == 0 and (whose or not state)) then
  return redis.error_reply('ERR the key "' .. once .. '" does not hold what Holdfast wrote: delete it')
end
local holds = redis.call('GET', main) == token

local function store(new_state, new_attempt, new_end, new_text, ms)
  redis.call('HSET', once, 'state', new_state, 'attempt', new_attempt, 'owner', owner, 'end', new_end, 'text', new_text)
  redis.call('PEXPIRE', once, ms)
end

if what == 'begin' then
  if state == 'done' or state == 'exhausted' then return { state == 'done' and 2 or 3, attempt, text } end
  if not holds then return { 0, attempt } end
  if whose == owner then
    -- Asked a second time: the reply was lost, or the request is so late that the attempt has ended since.
    if state ~= 'running' then return { 0, attempt } end
    redis.call('PEXPIRE', once, life)
    return { 1, attempt }
  end
  -- A process that died left no error; the stored one is from an earlier attempt.
  if state == 'running' then text = '' end
  if attempt >= number then
    store('exhausted', attempt, 'final', text, detail)
    return { 3, attempt, text }
  end
  store('running', attempt + 1, '', text, life)
  return { 1, attempt + 1 }
end

local is_ours = state == 'running' and whose == owner or not state and holds
local is_again = whose == owner and ended == what
if not is_ours and not is_again then return { 0 } end
-- A request that is sent twice writes twice, too: otherwise WAIT counts nothing.
redis.call('PEXPIRE', once, life)
if is_again then return { 1 } end
if what == 'keep' then store('running', math.max(attempt, number), '', text, life)
elseif what == 'done' then store('done', number, what, detail, life)
elseif what == 'final' then store('exhausted', number, what, detail, life)
elseif what == 'returned' then store('failed', math.max(0, attempt - 1), what, '', life)
else store('failed', number, what, detail, life) end
return { 1 }
