import type {
  AttemptEnd,
  BeginOutcome,
  BeginRequest,
  FinishOutcome,
  OnceReference,
} from '../../once-store.js';
import { LARGEST_FENCE } from './fence.js';
import { isCount } from './numbers.js';
import { script, type ServerFacts, type Verb } from './script.js';

export type BeginCall = Omit<BeginRequest, 'fencingToken'>;

export interface EndCall extends Omit<OnceReference, 'fencingToken'> {
  readonly what: 'keep' | AttemptEnd;
  readonly attempt: number;
  /** The value or the error. */
  readonly text?: string | undefined;
  /** How long to remember it. */
  readonly lifeMs: number;
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
const ONCE = script(
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
);

function namesOf(key: string, { names }: ServerFacts): readonly [string, string] {
  const { main, once } = names(key);
  return [main, once];
}

export const beginScript: Verb<BeginCall, BeginOutcome> = {
  encode: ({ key, token, owner, lifeMs, attempts, keepMs }, server) => [
    2,
    ...namesOf(key, server),
    ...['begin', token, owner, lifeMs, attempts, keepMs],
  ],
  decode(reply, _request, _server, shortfall) {
    if (!Array.isArray(reply)) return undefined;
    const [result, attempts, detail] = reply as unknown[];
    if (!isCount(attempts)) return undefined;
    const text = typeof detail === 'string' && detail !== '' ? detail : undefined;
    if (result === 0) return { status: 'lost', attempts };
    if (result === 1) return shortfall ?? { status: 'begun', attempt: attempts };
    if (result === 2) return { status: 'done', attempts, value: text };
    return result === 3 ? { status: 'exhausted', attempts, error: text } : undefined;
  },
  ...ONCE,
};

export const endScript: Verb<EndCall, FinishOutcome> = {
  encode: ({ key, token, owner, lifeMs, what, attempt, text = '' }, server) => [
    2,
    ...namesOf(key, server),
    ...[what, token, owner, lifeMs, attempt, text],
  ],
  decode(reply, _request, _server, shortfall) {
    if (!Array.isArray(reply) || reply.length !== 1) return undefined;
    if (reply[0] === 1) return shortfall ?? { status: 'accepted' };
    return reply[0] === 0 ? { status: 'superseded' } : undefined;
  },
  ...ONCE,
};
