import { holdModeOf } from '../../owner-token.js';
import type { LeaseReference, LinePlace, ReleaseOutcome } from '../../lock-store.js';
import type { WhileDown } from '../client/readiness.js';
import { give } from '../scripts/plain.js';
import { releaseScript, type ReleaseCall } from '../scripts/release.js';
import type { Server } from './server.js';

/** How a lease is released. */
export interface ReleaseManner extends Pick<ReleaseCall, 'wakes' | 'lastToken' | 'keepMs'> {
  /** The line that it leaves at the same time. */
  readonly leaves?: LinePlace | undefined;
  /** As in `EndingLease`. */
  readonly isPlain?: boolean | undefined;
  /** Default `'fails'`: the clean-up tries again later. */
  readonly whileDown?: WhileDown;
}

/**
 * Releases a lock at one node, and leaves its lines. Also what a request on its way may yet take. It can be overtaken between two slots, or
 * when the server did not know the script, or refused the requests that were sent together.
 */
export function releaseAt(
  server: Server,
  lease: LeaseReference,
  how: ReleaseManner = {},
): Promise<ReleaseOutcome> {
  const acquiring = server.acquiring.get(lease.token);
  const releasing = server.isOneSlot(lease.keys)
    ? releaseInSlot(server, lease, how)
    : release(server, lease, how);
  if (acquiring === undefined) return releasing;
  acquiring.isGivenUp = true;
  return releasing.then(async (outcome) => {
    if (outcome.status !== 'not-held') return outcome;
    await acquiring.done;
    return release(server, lease, how);
  });
}

async function release(
  server: Server,
  { keys, token }: LeaseReference,
  how: ReleaseManner,
): Promise<ReleaseOutcome> {
  const outcomes = await Promise.all(
    server.bySlot(keys).map((some) => releaseInSlot(server, { keys: some, token }, how)),
  );
  return (
    outcomes.find(({ status }) => status === 'unavailable') ??
    outcomes.find(({ status }) => status === 'not-held') ?? { status: 'released' }
  );
}

/** Releases keys of one slot. */
export function releaseInSlot(
  server: Server,
  lease: LeaseReference,
  how: ReleaseManner = {},
): Promise<ReleaseOutcome> {
  const { keys, token } = lease;
  const [key] = keys;
  if (key === undefined || how.isPlain !== true) return releaseWhole(server, lease, how);
  server.releasing.begin();
  return server.share(give, { key, token }).then((released) => {
    if (released === undefined)
      return releaseWhole(server, lease, how).finally(server.releasing.end);
    server.releasing.end();
    return released;
  });
}

function releaseWhole(
  server: Server,
  lease: LeaseReference,
  { wakes, lastToken, leaves, keepMs, whileDown }: ReleaseManner,
): Promise<ReleaseOutcome> {
  const { keys, token } = lease;
  return server.ask(releaseScript, {
    ...{ keys, token, wakes, keepMs, whileDown },
    // Another holder may have used a larger token.
    lastToken: holdModeOf(token) === 'exclusive' ? lastToken : undefined,
    member: server.member(lease, leaves),
    // Replicas may know a shorter TTL of keys that stay taken.
    durability: (keepMs ?? 0) > 0 ? undefined : 'at once',
  });
}
