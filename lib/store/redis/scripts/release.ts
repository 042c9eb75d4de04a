import { FENCE } from './fence.js';
import { HOLDERS } from './holders.js';
import { LINE, lineArgument } from './line.js';
import { callOn, CLOCK, orEmpty, putsBack, script, trimmed, type Verb } from './script.js';

export interface ReleaseCall {
  readonly key: string;
  readonly token: string;
  /** The last fencing token that was used, if it is known. */
  readonly lastToken?: number | undefined;
  /** The place in line to leave; '' for none. */
  readonly member: string;
  /**
   * Which callers in line are notified. Default: all that the release may concern. `'nobody'`: the callers that this
   * vote refused have a reason of their own to try again.
   */
  readonly wakes?: 'nobody' | undefined;
  /** For how many ms the key stays taken with its token, instead of being free at once. */
  readonly keepMs?: number | undefined;
}

const RELEASE = `--[[
  KEYS    main, fence, queue, holders
  ARGV    as far as there are any, each of them may be '':
          1 token
          2 how the line is decided: 'cluster', 'quorum', else standalone
          3 last fencing token that was used
          4 ms for which a fence outlives its lease ('' = a missing fence is not written)
          5 place in line to leave
          6 which callers are woken: 'nobody', or '' for all in line that it concerns
          7 ms for which the key stays taken with its token, instead of being free at once
  Reply   1 released, 0 not held
]]
local main, fence, queue, holders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, line, used, keep = ARGV[1] or '', ARGV[2] or '', tonumber(ARGV[3]), ARGV[4] or ''
local member, wakes = ARGV[5] or '', ARGV[6] or ''
local hold = tonumber(ARGV[7])

${CLOCK}${FENCE}${HOLDERS}${LINE}

local function raise_fence()
  local stored = tonumber(redis.pcall('GET', fence))
  if stored then redis.pcall('SET', fence, text(math.max(stored, used or 0) + 1), 'KEEPTTL') end
end

local function keep_held()
  -- This write is first: after it, a server whose memory is full refuses no other write.
  redis.call('PEXPIRE', main, hold)
  if mode_of(token) then add_holder(main, holders, token, hold, phase_of(main, holders, mode_of(token))) end
  -- The fence must outlive the key, even if the key lasts longer than before.
  local life = redis.pcall('PTTL', fence)
  if type(life) == 'number' and life > 0 then redis.pcall('PEXPIRE', fence, text(life + hold)) end
end

local function give_back()
  -- pcall: a value of another type is no lock, and no error.
  local holder = redis.pcall('GET', main)
  if member ~= '' then dequeue(queue, member) end
  if type(holder) == 'table' then return 0 end
  local taken, lasted = false, redis.pcall('PTTL', main)
  if not hold then taken = remove_holder(main, holders, token)
  elseif holds(main, holders, token) then
    taken = true
    keep_held()
  end
  holder = redis.pcall('GET', main)
  if taken then
    -- The remaining holders have the same fencing token; a holder of other keys too may have a larger one.
    if not holder or holder == token then raise_fence() end
    -- The callers in line wait for an end that has changed.
    local is_sooner = holder and (hold or redis.pcall('PTTL', main) < lasted)
    if is_sooner and line ~= 'quorum' then notify_next(main, queue, holders, nil, 0, line == '', {}) end
    if (is_sooner or not holder) and line == 'quorum' and wakes ~= 'nobody' then notify_all(main, queue) end
    return 1
  end
  if not holder and keep ~= '' then
    local above = used and used + 1 or 1
    local life = keep + math.max(0, math.ceil((above - now) / 1000)) + 1
    local added = redis.pcall('SET', fence, text(above), 'PX', life, 'NX')
    if not added and used then raise_fence() end
  end
  return 0
end

local ok, answer = pcall(give_back)
if line ~= 'quorum' then pcall(grant_next, main, queue, holders, '', line == '') end
-- Before Redis 7 an error is a text.
if ok or type(answer) == 'table' then return answer end
return redis.error_reply(answer)
`;

/**
 * Releases a key and passes it to the next in line.
 *
 * With `'nobody'`, no caller is woken: votes over several masters were not enough.
 *
 * The fence is raised above the last token that was used. So a late renewal that would put the key back finds the fence
 * touched. A fence that the server forgot is written again:
 * - above all tokens of the lease that ends, if one is known
 * - otherwise below all of them: a token that was never granted must not block a holder
 */
export const releaseScript: Verb<
  ReleaseCall,
  { readonly status: 'released' } | { readonly status: 'not-held' }
> = {
  encode({ key, token, lastToken, member, wakes, keepMs = 0 }, server) {
    const encoded = callOn([key], server);
    encoded.push(
      token,
      lineArgument(server.lineMode),
      orEmpty(lastToken),
      putsBack(server) ? server.options.fenceKeepMs : '',
      member,
      wakes ?? '',
      keepMs > 0 ? Math.ceil(keepMs) : '',
    );
    return trimmed(encoded);
  },
  decode: (reply) =>
    reply === 1 || reply === 0 ? { status: reply === 1 ? 'released' : 'not-held' } : undefined,
  ...script(RELEASE, 'release'),
};
