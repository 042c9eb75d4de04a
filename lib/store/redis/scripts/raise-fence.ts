import type { LeaseRequest, Unavailable } from '../../lock-store.js';
import { FENCE } from './fence.js';
import { HOLDERS } from './holders.js';
import { lineArgument } from './line.js';
import { isCount } from './numbers.js';
import { CLOCK, partsOf, script, type Verb } from './script.js';

interface RaiseFenceCall extends LeaseRequest {
  readonly fencingToken: number;
}

/** `'lost'`: not all of the keys have the fence, so the grant did not hold. */
type RaiseFenceAnswer = { readonly status: 'raised' } | { readonly status: 'lost' } | Unavailable;

/**
 * Raises the fences of keys that were granted in one slot, or on one server, to the token that was agreed on over several, where the
 * lease is still ours. On a Cluster the keys are leased for the whole TTL from then on.
 */
export const raiseFenceScript: Verb<RaiseFenceCall, RaiseFenceAnswer> = {
  encode({ keys, token, fencingToken, ttlMs }, { names, lineMode, options }) {
    const encoded = partsOf(keys.length * 3);
    for (const { main, fence, holders } of keys.map(names)) encoded.push(main, fence, holders);
    encoded.push(token, fencingToken, ttlMs, options.fenceKeepMs, lineArgument(lineMode));
    return encoded;
  },
  decode(reply, { keys }, _server, shortfall) {
    if (!isCount(reply)) return undefined;
    return reply === keys.length ? (shortfall ?? { status: 'raised' }) : { status: 'lost' };
  },
  ...script(
    `--[[
  KEYS    main, fence, holders of each key
  ARGV    1 token
          2 fencing token
          3 ttl in ms
          4 ms for which a fence outlives its lease
          5 how the line is decided. 'cluster': the keys, which were granted briefly, are leased for the ttl
  Reply   number of keys raised; a smaller one than asked for means that the grant did not hold
]]
${CLOCK}${FENCE}${HOLDERS}
local token, fence = ARGV[1], tonumber(ARGV[2])
local life = ARGV[3] + ARGV[4] + math.max(0, math.ceil((fence - now) / 1000))
local raised = 0
for i = 1, #KEYS, 3 do
  local main, holders = KEYS[i], KEYS[i + 2]
  if holds(main, holders, token) then
    local stored, damaged = fence_at(KEYS[i + 1])
    if damaged then return damaged end
    if stored < fence then
      redis.call('SET', KEYS[i + 1], ARGV[2], 'PX', text(fence_life(KEYS[i + 1], token, life)))
    end
    if ARGV[5] == 'cluster' then
      if mode_of(token) then add_holder(main, holders, token, ARGV[3], phase_of(main, holders, mode_of(token)))
      else redis.call('PEXPIRE', main, ARGV[3]) end
    end
    raised = raised + 1
  end
end
return raised
`,
    'raise-fence',
  ),
};
