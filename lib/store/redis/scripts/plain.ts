import { PROPOSAL_BOUND_US, script, type Script, type ServerFacts } from './script.js';

/** What one request gives to a call that it may share with others. */
export interface Share {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/**
 * A script that does the same for each of its keys. Many requests can share one call of it (group commit). The reply is the
 * answer to the only request, or a list of them. A value of another type is not plain, and no error: an error after the
 * first write would hide from the other requests what became of them.
 */
export interface SharedVerb<Request> extends Script {
  /** Whether a request waits while the connection is down. Default: it fails. */
  readonly whileDown?: 'waits';
  /** Whether the answer, if it is more than 0, is the server's clock in us. */
  readonly repliesClock?: boolean;
  encode(request: Request, server: ServerFacts): Share;
}

/** For how long a lock without TTL, of other software, is held: no lease lasts longer. */
export const ENDLESS_MS = 9e15;

export interface TakeCall {
  readonly key: string;
  readonly token: string;
  readonly ttlMs: number;
  /** A fencing token proposed by the client, so that several servers agree; 0 for none. */
  readonly proposal: number;
}

/**
 * Takes a key if that is plain: no other caller waits or shares, the key is free, and its fence is behind the clock. Everything is
 * read before anything is written. Where it is not plain, and after any error, the whole script is asked (`acquire.ts`).
 *
 * The answer is the server's clock in us; for a held key the ms until its lease ends, negative; otherwise 0. The fencing token is the clock, or the proposal if that is ahead of the
 * clock. It must not be ahead by more than a second.
 */
export const take: SharedVerb<TakeCall> = {
  repliesClock: true,
  encode: ({ key, token, ttlMs, proposal }, { names, options }) => {
    const { main, fence, queue, holders } = names(key);
    const aheadMs = proposal === 0 ? 0 : PROPOSAL_BOUND_US / 1_000;
    return {
      keys: [main, fence, queue, holders],
      args: [token, ttlMs, ttlMs + options.fenceKeepMs + aheadMs, proposal === 0 ? '' : proposal],
    };
  },
  ...script(
    `--[[
  KEYS    main, fence, queue, holders of each key
  ARGV    of each key: token, ttl in ms, ms for which its fence is kept, proposed fencing token or ''
  Reply   of each key the clock in us; or, if it is held and no caller waits, for how many ms yet, negative; or 0 if it is not plain;
          of several keys a list
]]
local time = redis.call('TIME')
local clock = time[1] .. string.sub('00000' .. time[2], -6)
local replies = {}
for i = 1, #KEYS, 4 do
  local reply, fence = 0, clock
  if redis.call('EXISTS', KEYS[i + 2], KEYS[i + 3]) == 0 then
    local last, proposal = redis.pcall('GET', KEYS[i + 1]), ARGV[i + 3]
    if proposal ~= '' and proposal - clock > 0 and proposal - clock <= ${String(PROPOSAL_BOUND_US)} then fence = proposal end
    if (not last or #last == 16 and not string.find(last, '%D') and last - fence < 0) and redis.call('SET', KEYS[i], ARGV[i], 'NX', 'PX', ARGV[i + 1]) then
      redis.call('SET', KEYS[i + 1], fence, 'PX', ARGV[i + 2])
      reply = clock
    else
      local left = redis.call('PTTL', KEYS[i])
      if left == -1 then reply = -${String(ENDLESS_MS)} elseif left >= 0 then reply = -math.max(left, 1) end
    end
  end
  replies[(i + 3) / 4] = reply
end
return replies[2] and replies or replies[1]
`,
    'acquire',
  ),
};

/**
 * So far a token may be ahead of the clock that turns count on from it, in us. The shortest TTL is longer: when the lease of a
 * holder that died is over, the clock is past all of its turns.
 */
const AHEAD_OF_TURNS_US = 20_000;

/** Whether turns may count on from a token that was granted when the clock showed this. */
export const isFromClock = (token: number, clockUs: number): boolean =>
  token - clockUs <= AHEAD_OF_TURNS_US;

/** As `take` decides. */
export const tokenOf = (clockUs: number, proposal: number): number =>
  proposal > clockUs && proposal - clockUs <= PROPOSAL_BOUND_US ? proposal : clockUs;

/**
 * Releases a key if that is plain: it holds the token, and no caller waits. The fence stays as it is: the last token that
 * was used is in it. Otherwise, and after any error, the whole script is asked (`release.ts`).
 */
export const give: SharedVerb<{ readonly key: string; readonly token: string }> = {
  whileDown: 'waits',
  encode: ({ key, token }, { names }) => {
    const { main, queue } = names(key);
    return { keys: [main, queue], args: [token] };
  },
  ...script(
    `--[[
  KEYS    main, queue of each key
  ARGV    token of each key
  Reply   of each key 1, or 0 if it is not plain; of several keys a list
]]
local replies = {}
for i = 1, #KEYS, 2 do
  local n = (i + 1) / 2
  local is_plain = redis.call('EXISTS', KEYS[i + 1]) == 0 and redis.pcall('GET', KEYS[i]) == ARGV[n]
  replies[n] = is_plain and redis.call('DEL', KEYS[i]) or 0
end
return replies[2] and replies or replies[1]
`,
    'release',
  ),
};
