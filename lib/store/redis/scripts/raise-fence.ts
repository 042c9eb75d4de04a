import type { LeaseRequest, Unavailable } from '../../lock-store.js';
import { isCount, lineArgument, luaText, partsOf, script, type Verb } from './script.js';

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
    const encoded = partsOf(keys.length * 4);
    for (const { main, fence, holders, limit } of keys.map(names))
      encoded.push(main, fence, holders, limit);
    encoded.push(token, fencingToken, ttlMs, options.fenceKeepMs, lineArgument(lineMode));
    return encoded;
  },
  decode(reply, { keys }, _server, shortfall) {
    if (!isCount(reply)) return undefined;
    return reply === keys.length ? (shortfall ?? { status: 'raised' }) : { status: 'lost' };
  },
  ...script(luaText('raise-fence'), 'raise-fence'),
};
