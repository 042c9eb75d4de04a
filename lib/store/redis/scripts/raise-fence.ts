import type { LeaseRequest, Unavailable } from '../../lock-store.js';
import { FENCE } from './fence.js';
import { isCount } from './numbers.js';
import { CLOCK, script, type Verb } from './script.js';

interface RaiseFenceCall extends LeaseRequest {
  readonly fencingToken: number;
}

/** `'lost'`: the key is not held any more, so the grant did not hold. */
type RaiseFenceAnswer = { readonly status: 'raised' } | { readonly status: 'lost' } | Unavailable;

/** Raises the fence of an exclusive lease on one server to the token that was agreed on over several. */
export const raiseFenceScript: Verb<RaiseFenceCall, RaiseFenceAnswer> = {
  encode({ key, token, fencingToken, ttlMs }, { names, options }) {
    const { main, fence } = names(key);
    return [2, main, fence, token, fencingToken, ttlMs, options.fenceKeepMs];
  },
  decode(reply, _request, _server, shortfall) {
    if (!isCount(reply)) return undefined;
    return reply === 1 ? (shortfall ?? { status: 'raised' }) : { status: 'lost' };
  },
  ...script(
    `--[[
  KEYS    main, fence
  ARGV    1 token
          2 fencing token
          3 ttl in ms
          4 ms for which a fence outlives its lease
  Reply   1 the fence has the token or a larger one, 0 the key is not held any more
]]
${CLOCK}${FENCE}
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local stored, damaged = fence_at(KEYS[2])
if damaged then return damaged end
local raised = tonumber(ARGV[2])
if stored < raised then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', text(ARGV[3] + ARGV[4] + math.max(0, math.ceil((raised - now) / 1000))))
end
return 1
`,
    'raise-fence',
  ),
};
