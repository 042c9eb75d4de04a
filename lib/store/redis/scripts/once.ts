import type { Unavailable } from '../../lock-store.js';
import type { AttemptEnd, BeginOutcome } from '../../once-store.js';
import type { KeyNames } from './key-names.js';
import { LARGEST_FENCE } from './fence.js';
import { isCount } from './numbers.js';
import { malformed, script, type Malformed, type Script, type ScriptCall } from './script.js';

interface Reference {
  /** The lease's token. */
  readonly token: string;
  readonly owner: string;
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
        readonly what: 'keep' | AttemptEnd;
        readonly attempt: number;
        /** The value or the error. */
        readonly text?: string | undefined;
      }
  );

export type OnceReply =
  | { readonly status: 'accepted' }
  | { readonly status: 'superseded' }
  | Exclude<BeginOutcome, Unavailable>;

interface OnceCodec {
  encode(names: Pick<KeyNames, 'main' | 'once'>, call: OnceCall): ScriptCall;
  decode(reply: unknown): OnceReply | Malformed;
}

function decode(reply: unknown): OnceReply | Malformed {
  if (!Array.isArray(reply)) return malformed(reply);
  const [result, attempts, detail] = reply as unknown[];
  if (reply.length === 1) {
    if (result === 1) return { status: 'accepted' };
    return result === 0 ? { status: 'superseded' } : malformed(reply);
  }
  if (!isCount(attempts)) return malformed(reply);
  const text = typeof detail === 'string' && detail !== '' ? detail : undefined;
  switch (result) {
    case 0:
      return { status: 'lost', attempts };
    case 1:
      return { status: 'begun', attempt: attempts };
    case 2:
      return { status: 'done', attempts, value: text };
    case 3:
      return { status: 'exhausted', attempts, error: text };
    default:
      return malformed(reply);
  }
}

/**
 * All changes of the record of work that is to be done once. They are one script, so that a process which has begun an
 * attempt finds it loaded when it has to end it quickly.
 *
 * A running attempt belongs to its owner until another one begins, even if another caller holds the lock. Without a
 * record, because the server forgot it, the attempt belongs to the holder of the lock.
 *
 * Redis refuses a script's first write when its memory is full, and none after that. So a begin starts with HSET, which
 * is refused. An end starts with a write that is not refused: finished work must not be repeated because it could not
 * be marked.
 */
export const onceScript: Script & OnceCodec = {
  encode({ main, once }, call) {
    const { what, token, owner, lifeMs } = call;
    return call.what === 'begin'
      ? [2, main, once, what, token, owner, lifeMs, call.attempts, call.keepMs]
      : [2, main, once, what, token, owner, lifeMs, call.attempt, call.text ?? ''];
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
  Reply   to begin
          {1, attempt} begun
          {2, attempts, value} done
          {3, attempts, error} none left
          {0, attempts} the caller may not begin
          to every other
          {1} accepted, {0} superseded
]]
local main, once = KEYS[1], KEYS[2]
local what, token, owner, life, number, detail = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local known = redis.call('HMGET', once, 'state', 'attempt', 'owner', 'end', 'text')
local state, whose, ended, text = known[1], known[3], known[4], known[5] or ''
local attempt = tonumber(known[2] or 0)
if not (attempt and attempt >= 0 and attempt <= ${String(LARGEST_FENCE)} and attempt % 1 == 0 and (whose or not state)) then
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
    if state == 'running' then return { 1, attempt } end
    return { 0, attempt }
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
if not is_ours then return { whose == owner and ended == what and 1 or 0 } end
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
