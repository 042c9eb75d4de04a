import { script } from './script.js';

/**
 * Everything that changes what is known of work that is to be done once: one script, so that whoever has begun an attempt finds it
 * loaded when it is to end it in a hurry. KEYS: main, once. ARGV: what to do, the lease's token, owner of the attempt, ms to remember
 * it for, and then
 *
 * - `begin`: number of attempts there may be, ms to remember for that there are none left. Answers {1, attempt} begun, {2, attempts,
 *   value} done, {3, attempts, error} none left, {0, attempts} the lock is not the caller's.
 * - `keep`, `done`, `failed`, `final`, `returned`: number of the attempt (not of one that is returned, for its owner may not know it),
 *   value or error. Answers {1} accepted, {0} superseded.
 * - `undo`: takes an end back that not enough of several masters have accepted. Answers {1} or {0}.
 *
 * An attempt that is running belongs to its owner until another one begins, whoever holds the lock. Where nothing is known, because the
 * server forgot it or was not there when it began, it is that of the holder of the lock. The first write is the one that Redis refuses
 * when memory is full.
 */
export const onceScript = script(`
local main, once = KEYS[1], KEYS[2]
local what, token, owner, life, number, detail = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local known = redis.call('HMGET', once, 'state', 'attempt', 'owner', 'end', 'text')
local state, attempt, whose, ended, text = known[1], tonumber(known[2] or 0), known[3], known[4], known[5] or ''
local holds = redis.call('GET', main) == token

local function put(new_state, new_attempt, new_end, new_text, ms)
  redis.call('HSET', once, 'state', new_state, 'attempt', new_attempt, 'owner', owner, 'end', new_end, 'text', new_text)
  redis.call('PEXPIRE', once, ms)
end

if what == 'begin' then
  if state == 'done' then return { 2, attempt, text } end
  if state == 'exhausted' then return { 3, attempt, text } end
  if not holds then return { 0, attempt } end
  if whose == owner then
    -- Asked again, because the answer was lost; or so late that it has ended since.
    if state == 'running' then return { 1, attempt } end
    return { 0, attempt }
  end
  if attempt >= number then
    -- Whoever died left no error; the one before it is not its.
    if state == 'running' then text = '' end
    put('exhausted', attempt, 'final', text, detail)
    return { 3, attempt, text }
  end
  put('running', attempt + 1, '', '', life)
  return { 1, attempt + 1 }
end

if what == 'undo' then
  if whose ~= owner or state == 'running' then return { 0 } end
  put('failed', attempt, what, '', life)
  return { 1 }
end

if (state ~= 'running' or whose ~= owner) and (state or not holds) then
  return { whose == owner and ended == what and 1 or 0 }
end
if what == 'keep' then put('running', math.max(attempt, number), '', '', life)
elseif what == 'done' then put('done', number, what, detail, life)
elseif what == 'final' then put('exhausted', number, what, detail, life)
elseif what == 'returned' then put('failed', math.max(0, attempt - 1), what, '', life)
else put('failed', number, what, detail, life) end
return { 1 }
`);
