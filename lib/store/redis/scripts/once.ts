import type { AttemptEnd } from '../../once-store.js';
import type { KeyNames } from './key-names.js';
import { LARGEST_FENCE } from './fence.js';
import { isCount, isPttl } from './numbers.js';
import { malformed, script, type Malformed, type Script, type ScriptCall } from './script.js';

interface Reference {
  /** The lease's token. */
  readonly token: string;
  readonly owner: string;
  /**
   * The caller's fence, which orders attempts over several masters; 0 with one master, where the last caller is the
   * latest.
   */
  readonly fencingToken: number;
  /** How long to remember it. */
  readonly lifeMs: number;
}

export type OnceCall = Reference &
  (
    | {
        readonly what: 'begin';
        /** How many attempts there may be. */
        readonly attempts: number;
        /** How long to remember that there are none left. */
        readonly keepMs: number;
      }
    | {
        readonly what: 'keep' | AttemptEnd | 'undo';
        readonly attempt: number;
        /** The value or the error. */
        readonly text?: string | undefined;
      }
  );

export type OnceReply =
  | { readonly status: 'accepted' }
  | { readonly status: 'superseded' }
  | {
      readonly status: 'begun';
      readonly attempt: number;
      /** Of the attempt before. */
      readonly error: string | undefined;
      /** The fence that the server accepted what it knew with. */
      readonly sure: number;
    }
  | { readonly status: 'lost'; readonly attempts: number; readonly sure: number }
  | {
      readonly status: 'done' | 'exhausted';
      readonly attempts: number;
      /** The value, or the error. */
      readonly text: string | undefined;
      readonly sure: number;
      /** The server accepts nothing more with a fence that is smaller than that of the call. */
      readonly hasPromised: boolean;
      readonly owner: string;
      /** 0 or less: it did not say. */
      readonly leftMs: number;
    };

interface OnceCodec {
  encode(names: Pick<KeyNames, 'main' | 'once'>, call: OnceCall): ScriptCall;
  decode(reply: unknown): OnceReply | Malformed;
}

function decode(reply: unknown): OnceReply | Malformed {
  if (!Array.isArray(reply)) return malformed(reply);
  const [result, attempts, detail, sure, promised, owner, left] = reply as unknown[];
  if (reply.length === 1) {
    if (result === 1) return { status: 'accepted' };
    return result === 0 ? { status: 'superseded' } : malformed(reply);
  }
  if (!isCount(attempts) || !isCount(sure)) return malformed(reply);
  const text = typeof detail === 'string' && detail !== '' ? detail : undefined;
  if (result === 0) return { status: 'lost', attempts, sure };
  if (result === 1) return { status: 'begun', attempt: attempts, error: text, sure };
  if ((result !== 2 && result !== 3) || typeof owner !== 'string' || !isPttl(left))
    return malformed(reply);
  const hasPromised = promised === 1;
  const status = result === 2 ? 'done' : 'exhausted';
  return { status, attempts, text, sure, hasPromised, owner, leftMs: left };
}

/**
 * All changes of the record of work that is to be done once. They are one script, so that a process which has begun an
 * attempt finds it loaded when it has to end it quickly.
 *
 * A running attempt belongs to its owner until another one begins, even if another caller holds the lock. Without a
 * record, because the server forgot it or was not reachable at the begin, the attempt belongs to the holder of the
 * lock.
 *
 * Over several masters this is one acceptor of Paxos, and the fence is the ballot:
 * - `fence` is the largest one that began here. An attempt with a smaller one is refused. One with a larger fence that
 *   did not begin here, because the server was not reachable, is accepted.
 * - `sure` is the one with which this server's record was accepted. Of the records of several servers, the one with the
 *   largest `sure` counts.
 *
 * Redis refuses a script's first write when its memory is full, and none after that. So a begin starts with HSET, which
 * is refused. An end starts with a write that is not refused: finished work must not be repeated because it could not
 * be marked.
 */
export const onceScript: Script & OnceCodec = {
  encode({ main, once }, call) {
    const { what, token, owner, lifeMs, fencingToken } = call;
    return call.what === 'begin'
      ? [2, main, once, what, token, owner, lifeMs, call.attempts, call.keepMs, fencingToken]
      : [2, main, once, what, token, owner, lifeMs, call.attempt, call.text ?? '', fencingToken];
  },
  decode,
  ...script(
    `--[[
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
          undo removes an end that not enough of several masters have accepted
          7 the caller's fence
  Reply   to begin
          {1, attempt, error of the one before, sure} begun
          {2, attempts, value, sure, 1 if promised, owner, ms left} done
          {3, attempts, error, ...} none left
          {0, attempts, '', sure} the caller may not begin
          to every other
          {1} accepted, {0} superseded; to undo: whether there was an end of its owner's
]]
local main, once = KEYS[1], KEYS[2]
local what, token, owner, life, number, detail = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local fence = tonumber(ARGV[7]) or 0
local known = redis.call('HMGET', once, 'state', 'attempt', 'owner', 'end', 'text', 'fence', 'sure')
local state, whose, ended, text = known[1], known[3], known[4], known[5] or ''
local function count(stored)
  local number = tonumber(stored or 0)
  return number and number >= 0 and number <= ${String(LARGEST_FENCE)} and number % 1 == 0 and number
end
local attempt, promised, sure = count(known[2]), count(known[6]), count(known[7])
if not (attempt and promised and sure and (whose or not state)) then
  return redis.error_reply('ERR the key "' .. once .. '" does not hold what Holdfast wrote: delete it')
end
local holds = redis.call('GET', main) == token

local function store(new_state, new_attempt, new_end, new_text, ms)
  redis.call('HSET', once, 'state', new_state, 'attempt', new_attempt, 'owner', owner, 'end', new_end, 'text', new_text,
    'fence', math.max(promised, fence), 'sure', sure)
  redis.call('PEXPIRE', once, ms)
end

if what == 'begin' then
  if state == 'done' or state == 'exhausted' then
    local may_promise, left = fence > 0 and fence >= promised, redis.call('PTTL', once)
    if may_promise then
      -- Changes nothing, but after it a full server accepts writes.
      if left > 0 then redis.call('PEXPIRE', once, left) end
      redis.call('HSET', once, 'fence', fence)
    end
    return { state == 'done' and 2 or 3, attempt, text, sure, may_promise and 1 or 0, whose, left }
  end
  if not holds or fence < promised then return { 0, attempt, '', sure } end
  if whose == owner then
    -- Asked a second time: the reply was lost, or the request is so late that the attempt has ended since.
    if state == 'running' then return { 1, attempt, text, sure } end
    return { 0, attempt, '', sure }
  end
  -- A process that died left no error; the stored one is from an earlier attempt.
  if state == 'running' then text = '' end
  if attempt >= number then
    store('exhausted', attempt, 'final', text, detail)
    return { 3, attempt, text, sure, 1, owner, tonumber(detail) }
  end
  store('running', attempt + 1, '', text, life)
  return { 1, attempt + 1, text, sure }
end

if what == 'undo' then
  if whose ~= owner or state == 'running' then return { 0 } end
  redis.call('PEXPIRE', once, life)
  store('failed', attempt, what, '', life)
  return { 1 }
end

local is_ours = state == 'running' and whose == owner or not state and holds
-- It began while this server was not reachable. An attempt that is returned may not have begun at all.
local is_later = state and whose ~= owner and fence > 0 and fence >= promised and what ~= 'returned'
if not is_ours and not is_later then return { whose == owner and ended == what and 1 or 0 } end
if what ~= 'returned' then sure = math.max(sure, fence) end
redis.call('PEXPIRE', once, life)
if what == 'keep' then store('running', math.max(attempt, number), '', text, life)
elseif what == 'done' then store('done', number, what, detail, life)
elseif what == 'final' then store('exhausted', number, what, detail, life)
elseif what == 'returned' then store('failed', math.max(0, attempt - 1), what, '', life)
else store('failed', number, what, detail, life) end
return { 1 }
`,
    'once',
  ),
};
