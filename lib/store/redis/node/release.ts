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
 * Releases a lock at one node, and leaves its line. Also what a request on its way may yet take. It can be overtaken when
 * the server did not know the script, or refused the requests that were sent together.
 */
export function releaseAt(
  server: Server,
  lease: LeaseReference,
  how: ReleaseManner = {},
): Promise<ReleaseOutcome> {
  const acquiring = server.acquiring.get(lease.token);
  const releasing = release(server, lease, how);
  if (acquiring === undefined) return releasing;
  server.givenUp.add(lease.token);
  return releasing.then(async (outcome) => {
    if (outcome.status !== 'not-held') return outcome;
    await acquiring;
    return release(server, lease, how);
  });
}

function release(
  server: Server,
  lease: LeaseReference,
  how: ReleaseManner,
): Promise<ReleaseOutcome> {
  if (how.isPlain !== true) return releaseWhole(server, lease, how);
  const { key, token } = lease;
  const since = server.now();
  return server
    .share(give, { key, token })
    .then((released) => released ?? releaseWhole(server, lease, how, since));
}

export function releaseWhole(
  server: Server,
  { key, token }: LeaseReference,
  { wakes, lastToken, leaves, keepMs, whileDown }: ReleaseManner,
  since?: number,
): Promise<ReleaseOutcome> {
  return server.ask(releaseScript, {
    ...{ key, token, wakes, keepMs, whileDown, since },
    // Another holder may have used a larger token.
    lastToken: holdModeOf(token) === 'exclusive' ? lastToken : undefined,
    member: server.member({ key, token }, leaves),
    durability: 'at once',
  });
}
