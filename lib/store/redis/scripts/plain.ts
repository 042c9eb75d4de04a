import type { SeveralLeases, Unavailable } from '../../lock-store.js';
import { MARK } from '../../owner-token.js';
import { refusal, type Vote } from './acquire.js';
import { isFromClock, tokenOf } from './fence.js';
import { isCount, isPttl } from './numbers.js';
import {
  callOn,
  PROPOSAL_BOUND_US,
  script,
  type Script,
  type ServerFacts,
  type Verb,
} from './script.js';

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
export interface SharedVerb<Request, Answer> extends Script {
  /** Whether a request waits while the connection is down. Default: it fails. */
  readonly whileDown?: 'waits';
  encode(request: Request, server: ServerFacts): Share;
  /** Never throws. `undefined`: it is not plain, or the script cannot have sent this. The whole script has to be asked. */
  decode(reply: unknown, request: Request): Answer | undefined;
}

export interface TakeCall {
  readonly key: string;
  readonly token: string;
  readonly ttlMs: number;
  /** A fencing token proposed by the client, so that several servers agree; 0 for none. */
  readonly proposal: number;
}

/** What `take` says to a request for a key. */
type TakeAnswer = Exclude<Vote, Unavailable> & { readonly clockUs?: number };

const argumentsOf = (
  { token, ttlMs, proposal }: Omit<TakeCall, 'key'>,
  { options }: ServerFacts,
): Share['args'] => {
  const aheadMs = proposal === 0 ? 0 : PROPOSAL_BOUND_US / 1_000;
  return [token, ttlMs, ttlMs + options.fenceKeepMs + aheadMs, proposal === 0 ? '' : proposal];
};

const TAKE = script(
  `--[[
  KEYS    main, fence, queue, holders of each key
  ARGV    of each key: token, ttl in ms, ms for which its fence is kept, proposed fencing token or ''
  Reply   of each key the clock in us; or, if another token holds it and no caller waits, {PTTL, that token}; or 0 if it, or another
          key of its request, is not plain; of several keys a list
]]
local time = redis.call('TIME')
local clock = time[1] .. string.sub('00000' .. time[2], -6)
local replies, fences, first, is_plain = {}, {}, 1, true
for i = 1, #KEYS, 4 do
  local reply, fence = 0, clock
  local found = redis.call('EXISTS', KEYS[i], KEYS[i + 2], KEYS[i + 3])
  if found == 0 then
    local last, proposal = redis.pcall('GET', KEYS[i + 1]), ARGV[i + 3]
    if proposal ~= '' and proposal - clock > 0 and proposal - clock <= ${String(PROPOSAL_BOUND_US)} then fence = proposal end
    if not last or #last == 16 and not string.find(last, '%D') and last - fence < 0 then
      reply = clock
      fences[i] = fence
    end
  elseif found == 1 then
    local holder = redis.pcall('GET', KEYS[i])
    if type(holder) == 'string' and holder ~= ARGV[i] and string.sub(holder, 1, ${String(MARK.length + 1)}) ~= '${MARK}:' then
      reply = { redis.call('PTTL', KEYS[i]), string.match(holder, '^%S*') }
    end
  end
  replies[(i + 3) / 4] = reply
  is_plain = is_plain and fences[i] ~= nil
  -- The keys of one request have one token.
  if ARGV[i + 4] ~= ARGV[i] then
    for j = first, i, 4 do
      if is_plain then
        redis.call('SET', KEYS[j], ARGV[j], 'PX', ARGV[j + 1])
        redis.call('SET', KEYS[j + 1], fences[j], 'PX', ARGV[j + 2])
      elseif fences[j] then
        replies[(j + 3) / 4] = 0
      end
    end
    first, is_plain = i + 4, true
  end
end
return replies[2] and replies or replies[1]
`,
  'acquire',
);

/**
 * Takes a key if that is plain: no other caller waits or shares, the key is free, and its fence is behind the token to be granted. Everything is
 * read before anything is written. Where it is not plain, and after any error, the whole script is asked (`acquire.ts`).
 *
 * A key that another token holds is refused as by the whole script. The request's own token at the key is not plain: the
 * request was sent twice. A marker is not, because its holders may be gone.
 *
 * The fencing token is the clock, or the proposal if that is ahead of the clock. It must not be ahead by more than a second.
 */
export const take: SharedVerb<TakeCall, TakeAnswer> = {
  encode: (request, server) => {
    const { main, fence, queue, holders } = server.names(request.key);
    return { keys: [main, fence, queue, holders], args: argumentsOf(request, server) };
  },
  decode(reply, { key, proposal }) {
    if (Array.isArray(reply)) {
      const [pttl, holder] = reply as unknown[];
      if (!isPttl(pttl) || typeof holder !== 'string') return undefined;
      return { status: 'held', key, ...refusal(holder, pttl) };
    }
    const clockUs = typeof reply === 'string' ? Number(reply) : reply;
    if (!isCount(clockUs) || clockUs === 0) return undefined;
    const fencingToken = tokenOf(clockUs, proposal);
    return {
      status: 'granted',
      clockUs,
      fencingToken,
      isFromClock: isFromClock(fencingToken, clockUs),
      isPlain: true,
      othersWait: false,
    };
  },
  ...TAKE,
};

/** Takes several keys in the same way, all or none: nothing is written unless all of them are plain. */
export const takeTogether: Verb<SeveralLeases, TakeAnswer | { readonly status: 'not-plain' }> = {
  encode({ keys, token, ttlMs }, server) {
    const encoded = callOn(keys, server);
    const args = argumentsOf({ token, ttlMs, proposal: 0 }, server);
    for (const _ of keys) encoded.push(...args);
    return encoded;
  },
  decode(reply, { keys, token, ttlMs }) {
    if (!Array.isArray(reply) || reply.length !== keys.length) return undefined;
    const answers = keys.map((key, index) =>
      take.decode(reply[index], { key, token, ttlMs, proposal: 0 }),
    );
    const [first] = answers;
    if (first?.status === 'granted' && answers.every((each) => each?.status === 'granted'))
      return first;
    return answers.find((each) => each?.status === 'held') ?? { status: 'not-plain' };
  },
  ...TAKE,
};

/**
 * Releases a key if that is plain: it holds the token, and no caller waits. The fence stays as it is: the last token that
 * was used is in it. Otherwise, and after any error, the whole script is asked (`release.ts`).
 */
export const give: SharedVerb<
  { readonly key: string; readonly token: string },
  { readonly status: 'released' }
> = {
  whileDown: 'waits',
  encode: ({ key, token }, { names }) => {
    const { main, queue } = names(key);
    return { keys: [main, queue], args: [token] };
  },
  decode: (reply) => (reply === 1 ? { status: 'released' } : undefined),
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
