import { holdModeOf } from '../../owner-token.js';
import type { LeaseReference, LinePlace, ReleaseOutcome } from '../../lock-store.js';
import type { WhileDown } from '../client/readiness.js';
import { give } from '../scripts/plain.js';
import { releaseScript, type ReleaseCall } from '../scripts/release.js';
import type { Group, Server } from './server.js';

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
  const releasing = release(server, lease, how);
  if (acquiring === undefined) return releasing;
  acquiring.isGivenUp = true;
  return releasing.then(async (outcome) => {
    if (outcome.status !== 'not-held') return outcome;
    await acquiring.done;
    return release(server, lease, how);
  });
}

function release(
  server: Server,
  lease: LeaseReference,
  how: ReleaseManner,
): Promise<ReleaseOutcome> {
  const groups = server.groups(lease.keys);
  const [first, second] = groups;
  return first !== undefined && second === undefined
    ? releaseGroup(server, first, lease, how)
    : releaseGroups(server, groups, lease, how);
}

export function releaseGroup(
  server: Server,
  group: Group,
  lease: LeaseReference,
  how: ReleaseManner = {},
): Promise<ReleaseOutcome> {
  const [key] = group.keys;
  if (key === undefined || how.isPlain !== true) return releaseWhole(server, group, lease, how);
  const { token } = lease;
  const since = server.now();
  server.releasing.begin();
  return server.share(give, { key, token }).then((released) => {
    if (released === undefined)
      return releaseWhole(server, group, lease, how, since).finally(server.releasing.end);
    server.releasing.end();
    return released;
  });
}

function releaseWhole(
  server: Server,
  { slot, keys }: Group,
  { token }: LeaseReference,
  { wakes, lastToken, leaves, keepMs, whileDown }: ReleaseManner,
  since?: number,
): Promise<ReleaseOutcome> {
  return server.ask(releaseScript, {
    ...{ keys, token, wakes, keepMs, whileDown, since },
    // Another holder may have used a larger token.
    lastToken: holdModeOf(token) === 'exclusive' ? lastToken : undefined,
    member: server.member({ keys, token }, leaves, slot),
    durability: 'at once',
  });
}

async function releaseGroups(
  server: Server,
  groups: readonly Group[],
  lease: LeaseReference,
  how: ReleaseManner,
): Promise<ReleaseOutcome> {
  const outcomes = await Promise.all(
    groups.map((group) => releaseGroup(server, group, lease, how)),
  );
  return (
    outcomes.find(({ status }) => status === 'unavailable') ??
    outcomes.find(({ status }) => status === 'not-held') ?? { status: 'released' }
  );
}
