import { script } from './script.js';

/**
 * Everything that changes what is known of work that is to be done once: one script, so that whoever has begun an attempt finds it
 * loaded when it is to end it in a hurry. KEYS: main, once. ARGV: what to do, the lease's token, owner of the attempt, ms to remember
 * it for, and then
 *
 * - `begin`: number of attempts there may be, ms to remember for that there are none left. Answers {1, attempt, error of the one before,
 *   sure} begun, {2, attempts, value, sure, 1 if promised, owner, ms left} done, {3, attempts, error, …} none left, {0, attempts, '',
 *   sure} the caller may not begin.
 * - `keep`, `done`, `failed`, `final`, `returned`: number of the attempt (not of one that is returned, for its owner may not know it),
 *   value or error. Answers {1} accepted, {0} superseded.
 * - `undo`: takes an end back that not enough of several masters have accepted. Answers {1} or {0}.
 *
 * Then the caller's fence, which orders attempts over several masters; '' with one, where whoever came last is the latest.
 *
 * An attempt that is running belongs to its owner until another one begins, whoever holds the lock. Where nothing is known, because the
 * server forgot it or was not there when it began, it is that of the holder of the lock.
 *
 * Over several masters this is one acceptor of Paxos, and the fence is the ballot. `fence`: the largest one that began here; what has a
 * smaller one is refused, and what has a larger one and did not begin here, because the server was not there, is accepted. `sure`: the
 * one that what is known here was accepted with; of what several servers know, that with the largest counts.
 *
 * Redis refuses a script's first write when its memory is full, and none after that. So to begin starts with HSET, which is refused, and
 * an end with one that is not: work that is done must not be repeated because it could not be marked.
 */
export const onceScript = script(`
local main, once = KEYS[1], KEYS[2]
local what, token, owner, life, number, detail = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local fence = tonumber(ARGV[7]) or 0
local known = redis.call('HMGET', once, 'state', 'attempt', 'owner', 'end', 'text', 'fence', 'sure')
local state, attempt, whose, ended, text = known[1], tonumber(known[2] or 0), known[3], known[4], known[5] or ''
local promised, sure = tonumber(known[6] or 0), tonumber(known[7] or 0)
local holds = redis.call('GET', main) == token

local function put(new_state, new_attempt, new_end, new_text, ms)
  redis.call('HSET', once, 'state', new_state, 'attempt', new_attempt, 'owner', owner, 'end', new_end, 'text', new_text,
    'fence', math.max(promised, fence), 'sure', sure)
  redis.call('PEXPIRE', once, ms)
end

if what == 'begin' then
  if state == 'done' or state == 'exhausted' then
    local may_promise, left = fence > 0 and fence >= promised, redis.call('PTTL', once)
    if may_promise then
      -- Changes nothing, but lets a full server write.
      if left > 0 then redis.call('PEXPIRE', once, left) end
      redis.call('HSET', once, 'fence', fence)
    end
    return { state == 'done' and 2 or 3, attempt, text, sure, may_promise and 1 or 0, whose, left }
  end
  if not holds or fence < promised then return { 0, attempt, '', sure } end
  if whose == owner then
    -- Asked again, because the answer was lost; or so late that it has ended since.
    if state == 'running' then return { 1, attempt, text, sure } end
    return { 0, attempt, '', sure }
  end
  -- Whoever died left no error; the one before it is not its.
  if state == 'running' then text = '' end
  if attempt >= number then
    put('exhausted', attempt, 'final', text, detail)
    return { 3, attempt, text, sure, 1, owner, tonumber(detail) }
  end
  put('running', attempt + 1, '', text, life)
  return { 1, attempt + 1, text, sure }
end

if what == 'undo' then
  if whose ~= owner or state == 'running' then return { 0 } end
  redis.call('PEXPIRE', once, life)
  put('failed', attempt, what, '', life)
  return { 1 }
end

local is_ours = state == 'running' and whose == owner or not state and holds
-- It began while this server was not there. What is given back may not have begun at all.
local is_later = state and whose ~= owner and fence > 0 and fence >= promised and what ~= 'returned'
if not is_ours and not is_later then return { whose == owner and ended == what and 1 or 0 } end
if what ~= 'returned' then sure = math.max(sure, fence) end
redis.call('PEXPIRE', once, life)
if what == 'keep' then put('running', math.max(attempt, number), '', text, life)
elseif what == 'done' then put('done', number, what, detail, life)
elseif what == 'final' then put('exhausted', number, what, detail, life)
elseif what == 'returned' then put('failed', math.max(0, attempt - 1), what, '', life)
else put('failed', number, what, detail, life) end
return { 1 }
`);
