import type { TransferOutcome, TransferRequest } from '../../lock-store.js';
import { FENCE } from './fence.js';
import { HOLDERS } from './holders.js';
import { LINE, lineArgument } from './line.js';
import { isCount } from './numbers.js';
import { callOn, CLOCK, script, trimmed, type Verb } from './script.js';

/**
 * Gives a lease another owner token, with a TTL of its own. Later requests of the previous holder find another token, so
 * they renew nothing and release nothing.
 */
export const transferScript: Verb<TransferRequest, TransferOutcome> = {
  encode({ key, token, to, ttlMs, lastToken }, server) {
    const encoded = callOn([key], server);
    encoded.push(
      token,
      to,
      ttlMs,
      server.options.fenceKeepMs,
      lastToken,
      lineArgument(server.lineMode),
    );
    return trimmed(encoded);
  },
  decode(reply, { lastToken }, _server, shortfall) {
    if (!Array.isArray(reply)) return undefined;
    const [result, text] = reply as unknown[];
    if (result === 1) return shortfall ?? { status: 'transferred' };
    const fence = Number(text);
    if (!isCount(fence)) return undefined;
    if (result === 0) return { status: 'lost', reason: 'gone' };
    // Every grant raises the fence.
    const reason = fence > lastToken ? 'stolen' : 'attached';
    return result === -1 ? { status: 'lost', reason } : undefined;
  },
  ...script(
    `--[[
  KEYS    main, fence, queue, holders
  ARGV    1 token
          2 token that replaces it
          3 ttl in ms
          4 ms for which a fence outlives its lease
          5 last fencing token that was used under the lease
          6 how the line is decided: 'cluster', else standalone
  Reply   {1} the key has the new token
          {0, fence} it has no holder, {-1, fence} it has another holder: nothing was changed
]]
${CLOCK}${FENCE}${HOLDERS}${LINE}
local main, fence, queue, holders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, to, ttl, keep, used, line = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] or ''
local mode = mode_of(to)
local stored, damaged = fence_at(fence)
if damaged then return damaged end
if not holds(main, holders, token) and not holds(main, holders, to) then
  local is_free = not redis.pcall('GET', main) or mode ~= nil and is_open(main)
  if is_free then pcall(grant_next, main, queue, holders, '', line == '') end
  return { is_free and 0 or -1, text(stored) }
end

local lasted = redis.pcall('PTTL', main)
local life = ttl + keep + math.max(0, math.ceil((math.max(stored, used) - now) / 1000))
-- The write that Redis does not refuse when memory is full comes first: after it, Redis refuses none.
redis.pcall('PEXPIRE', fence, text(fence_life(fence, to, life)))
local phase = mode and phase_of(main, holders, mode)
if mode then take_out(holders, token) end
add_holder(main, holders, to, ttl, phase)
if not mode and used > stored then redis.pcall('SET', fence, text(used), 'PX', text(life)) end
-- The callers in line wait for an end that has changed.
if redis.pcall('PTTL', main) < lasted then notify_next(main, queue, holders, nil, 0, line == '', {}) end
return { 1 }
`,
    'transfer',
  ),
};
