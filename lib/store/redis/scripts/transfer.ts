import { FENCE } from './fence.js';
import { HOLDERS } from './holders.js';
import type { KeyNames } from './key-names.js';
import { LINE, lineArgument, type LineMode } from './line.js';
import { isCount } from './numbers.js';
import {
  callOn,
  CLOCK,
  malformed,
  orEmpty,
  script,
  trimmed,
  type ScriptWithCodec,
} from './script.js';

export interface TransferCall {
  readonly names: readonly KeyNames[];
  readonly token: string;
  /** The token that takes its place. */
  readonly to: string;
  readonly ttlMs: number;
  /** For so long a fence outlives its lease. */
  readonly fenceKeepMs: number;
  readonly lineMode: LineMode;
  /** The fencing token of those who hold the keys together, where the lease was exclusive. */
  readonly phase: number | undefined;
}

export type TransferReply =
  | { readonly status: 'transferred' }
  /** No caller or another caller holds a key. `fence` is the one beside it. */
  | { readonly status: 'gone' | 'taken'; readonly fence: number };

const REFUSALS: Readonly<Record<number, 'gone' | 'taken'>> = { 0: 'gone', [-1]: 'taken' };

/**
 * Gives a lease another owner token, with a TTL of its own. The new token may be of a weaker mode: then callers at the
 * head of the line that may hold the keys beside it are admitted. All keys are read before one is changed. Later
 * requests of the previous holder find another token, so they renew nothing and release nothing.
 */
export const transferScript: ScriptWithCodec<TransferCall, TransferReply> = {
  encode({ names, token, to, ttlMs, fenceKeepMs, lineMode, phase }) {
    const encoded = callOn({ names });
    encoded.push(token, to, ttlMs, fenceKeepMs, lineArgument(lineMode), orEmpty(phase));
    return trimmed(encoded);
  },
  decode(reply) {
    if (!Array.isArray(reply)) return malformed(reply);
    const [result, text] = reply as unknown[];
    if (result === 1) return { status: 'transferred' };
    const [status, fence] = [REFUSALS[Number(result)], Number(text)];
    return status === undefined || !isCount(fence) ? malformed(reply) : { status, fence };
  },
  ...script(
    `--[[
  KEYS    main, fence, queue, holders of each key
  ARGV    1 token
          2 token that replaces it
          3 ttl in ms
          4 ms for which a fence outlives its lease
          as far as there are any, each of them may be '':
          5 how the line is decided: 'cluster', else standalone
          6 fencing token of the phase that begins, if the lease was exclusive
  Reply   {1} all keys have the new token
          {0, fence} a key has no holder, {-1, fence} a key has another holder: nothing was changed
]]
${CLOCK}${FENCE}${HOLDERS}${LINE}
local token, to, ttl, keep, line = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] or ''
local mode, counts, fences = mode_of(to), line == '', {}
local changes = kind_of(token) ~= kind_of(to)

for i = 1, #KEYS, 4 do
  local main, queue, holders = KEYS[i], KEYS[i + 2], KEYS[i + 3]
  local stored, damaged = fence_at(KEYS[i + 1])
  if damaged then return damaged end
  fences[i] = stored
  -- One that is carried out late must not weaken a lease that was upgraded since.
  local is_late = is_older(token, redis.pcall('GET', main))
  if is_late or not holds(main, holders, token) and not holds(main, holders, to) then
    local is_free = not redis.pcall('GET', main) or mode ~= nil and is_open(main)
    if is_free then pcall(grant_next, main, queue, holders, '', counts) end
    return { is_free and 0 or -1, text(stored) }
  end
end

for i = 1, #KEYS, 4 do
  local main, fence, queue, holders = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  local lasted = redis.pcall('PTTL', main)
  local life = ttl + keep + math.max(0, math.ceil((fences[i] - now) / 1000))
  -- The write that Redis does not refuse when memory is full comes first: after it, Redis refuses none.
  redis.pcall('PEXPIRE', fence, text(fence_life(fence, to, life)))
  local phase = mode and (phase_of(main, holders, mode) or tonumber(ARGV[6]))
  if mode then take_out(holders, token) end
  if kind_of(to) == 'shared' then take_out(holders, upgradeable(to)) end
  add_holder(main, holders, to, ttl, phase)
  -- The callers in line wait for an end that has changed.
  if redis.pcall('PTTL', main) < lasted and not changes then notify_next(main, queue, holders, nil, 0, counts, {}) end
end
if changes then
  for i = 1, #KEYS, 4 do pcall(grant_next, KEYS[i], KEYS[i + 2], KEYS[i + 3], '', counts) end
end
return { 1 }
`,
    'transfer',
  ),
};
