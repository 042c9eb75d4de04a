import { FENCE } from './fence.js';
import { TOKENS } from './acquire-free.js';
import { HOLDERS } from './holders.js';
import { LINE, lineArgument, type LineMode } from './line.js';
import { isCount, isPttl } from './numbers.js';
import { QUARANTINE } from './quarantine.js';
import {
  callOn,
  CLOCK,
  malformed,
  orEmpty,
  script,
  trimmed,
  type LockKeys,
  type ScriptWithCodec,
} from './script.js';

export interface UpgradeCall extends LockKeys {
  /** The token that waits to be upgraded; from it follows the one that holds the keys now. */
  readonly token: string;
  /** The token that is to hold them. */
  readonly to: string;
  readonly ttlMs: number;
  /** For so long a fence outlives its lease. */
  readonly fenceKeepMs: number;
  readonly lineMode: LineMode;
  /** The place to stand in line at; '' for none. */
  readonly member: string;
  /** The longest TTL of the restart guard. */
  readonly maxTtlMs: number | undefined;
}

export type UpgradeReply =
  | { readonly status: 'granted'; readonly fencingToken: number; readonly othersWait: boolean }
  /** Others hold a key beside it; `position` is counted from 1. */
  | {
      readonly status: 'refused';
      readonly position: number;
      readonly remainingMs: number;
      readonly stands: boolean;
    }
  | { readonly status: 'quarantined'; readonly leftUs: number }
  /** It does not hold a key any more. */
  | { readonly status: 'gone' | 'taken' };

const [GRANTED, REFUSED, QUARANTINED, GONE, TAKEN] = [1, 0, -1, -2, -3];

function decode(reply: unknown): UpgradeReply | ReturnType<typeof malformed> {
  if (!Array.isArray(reply)) return malformed(reply);
  const [result, first, second, third] = reply as unknown[];
  if (result === GONE) return { status: 'gone' };
  if (result === TAKEN) return { status: 'taken' };
  if (!isCount(first)) return malformed(reply);
  if (result === GRANTED)
    return { status: 'granted', fencingToken: first, othersWait: Number(second) > 0 };
  if (result === QUARANTINED) return { status: 'quarantined', leftUs: first };
  if (result !== REFUSED || !isPttl(second)) return malformed(reply);
  return { status: 'refused', position: first, remainingMs: second, stands: third === 1 };
}

/**
 * Makes an upgradeable lease exclusive, all keys or none. It never releases them: its token replaces the marker in one
 * step. While others hold one of the keys, it stands in line before all waiting callers, so no caller joins the
 * holders.
 *
 * It is given nothing that it did not ask for. If the caller died, or waits no longer, only its place is left, and that
 * ends with its upgradeable lease.
 */
export const upgradeScript: ScriptWithCodec<UpgradeCall, UpgradeReply> = {
  encode(call) {
    const encoded = callOn(call);
    encoded.push(
      call.token,
      call.to,
      call.ttlMs,
      call.fenceKeepMs,
      lineArgument(call.lineMode),
      call.member,
      orEmpty(call.maxTtlMs),
    );
    return trimmed(encoded);
  },
  decode,
  ...script(
    `--[[
  KEYS    main, fence, queue, holders of each key; with a guard also its epoch key, last
  ARGV    1 token that waits to be upgraded
          2 token that is to hold the keys
          3 ttl in ms
          4 ms for which a fence outlives its lease
          as far as there are any, each of them may be '':
          5 how the line is decided: 'cluster', else standalone
          6 place to stand in line at
          7 longest TTL in ms of the restart guard
  Reply   {1, fencing token, number of others in line}
          {0, position of the key that others hold, ms until they are done at the latest, 1 when standing in line}
          {-1, us of quarantine}
          {-2} a key has no holder, {-3} a key has another holder
]]
${CLOCK}${FENCE}${TOKENS}${QUARANTINE}${HOLDERS}${LINE}
local token, to, ttl, keep, line = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] or ''
local member, max_ttl = ARGV[6] or '', tonumber(ARGV[7])
local last = max_ttl and #KEYS - 1 or #KEYS

-- Before all waiting callers. The line outlives the lock, as every line does.
local function stand(queue, main)
  local added = redis.pcall('ZADD', queue, 'NX', 0, member)
  if type(added) ~= 'number' then return 0 end
  redis.pcall('PEXPIRE', queue, math.max(math.max(redis.pcall('PTTL', main), 0) + keep, redis.pcall('PTTL', queue)))
  return 1
end

local busy
for i = 1, last, 4 do
  local main, holders = KEYS[i], KEYS[i + 3]
  if not holds(main, holders, upgradeable(token)) or is_older(to, redis.pcall('GET', main)) then
    return { is_open(main) and ${String(GONE)} or ${String(TAKEN)} }
  end
  if not busy and in_the_way(main, holders, token) then busy = i end
end
local quarantined = max_ttl and quarantine(KEYS[#KEYS], max_ttl) or 0
if quarantined > 0 then return { -1, quarantined } end
if busy then
  local stands = member ~= '' and 1 or 0
  if member ~= '' then
    for i = 1, last, 4 do stands = math.min(stands, stand(KEYS[i + 2], KEYS[i])) end
  end
  return { 0, (busy + 3) / 4, left(KEYS[busy], KEYS[busy + 3], token), stands }
end

local highest, others = 0, 0
for i = 1, last, 4 do
  local stored, damaged = fence_at(KEYS[i + 1])
  if damaged then return damaged end
  highest = math.max(highest, stored)
end
local first = next_token(highest)
for i = 1, last, 4 do redis.call('SET', KEYS[i + 1], text(first), 'PX', text(fence_ms(first, ttl, keep))) end
for i = 1, last, 4 do
  redis.call('SET', KEYS[i], to, 'PX', ttl)
  redis.call('DEL', KEYS[i + 3])
  if member ~= '' then redis.pcall('ZREM', KEYS[i + 2], member) end
  local waiting = redis.pcall('ZCARD', KEYS[i + 2])
  if type(waiting) == 'number' then others = others + waiting end
end
return { 1, first, others }
`,
    'upgrade',
  ),
};
