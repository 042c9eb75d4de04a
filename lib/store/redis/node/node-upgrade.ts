import type { Unavailable, UpgradeOutcome, UpgradeRequest } from '../../lock-store.js';
import { upgradeToken } from '../../owner-token.js';
import { hashTagOf } from '../scripts/key-names.js';
import { upgradeScript } from '../scripts/upgrade.js';
import type { Group } from './key-groups.js';
import type { NodeAcquire } from './node-acquire.js';
import type { NodeScripts } from './node-scripts.js';

/**
 * Makes an upgradeable lease exclusive at one node. Keys in several slots go one slot after the other. Keys that are
 * exclusive already stay so while the lease waits for the others. The lease has them anyway, and no other caller is to
 * join it.
 */
export async function upgradeAt(
  scripts: NodeScripts,
  acquire: NodeAcquire,
  request: UpgradeRequest,
): Promise<UpgradeOutcome> {
  const groups = scripts.parts.slots.groups(request.keys);
  let fencingToken = 0;
  let othersWait = false;
  for (const group of groups) {
    const outcome = await upgradeGroup(scripts, group, request);
    if (outcome.status === 'unavailable' && fencingToken > 0) return afterGrant(outcome);
    if (outcome.status !== 'granted') return outcome;
    fencingToken = Math.max(fencingToken, outcome.fencingToken);
    othersWait ||= outcome.othersWait === true;
  }
  if (groups.length > 1) {
    const lease = { ...request, token: request.to };
    const failure = await acquire.raiseFence(lease, fencingToken);
    if (failure !== undefined) return failure;
  }
  return { status: 'granted', fencingToken, othersWait };
}

/** This request may never have left the process, but one before it did. */
function afterGrant({ sent: _, ...outage }: Unavailable): Unavailable {
  return outage;
}

/** No message calls it if it found no place. */
const UNTOLD_CHECK_MS = 1_000;

async function upgradeGroup(
  scripts: NodeScripts,
  group: Group,
  { token, to, ttlMs, line }: UpgradeRequest,
): Promise<UpgradeOutcome> {
  const { connection, options, lineMode, prefix, inbox, watch } = scripts.parts;
  const { slot, names } = group;
  // The first of those in line has to hear that it is called.
  if (line !== undefined && inbox.channelAt(slot) === undefined)
    await inbox.listenAt(slot, hashTagOf(names[0]));
  const call = upgradeScript.encode({
    names,
    epoch: scripts.guardedBy,
    token: upgradeToken(token),
    to,
    ttlMs,
    fenceKeepMs: options.fenceKeepMs,
    lineMode,
    member: scripts.member({ keys: [], token: upgradeToken(token) }, line, group),
    maxTtlMs: options.restartGuard?.maxTtlMs,
  });
  const timeLimitMs = scripts.timeLimitMs(ttlMs);
  const reply = await scripts.write(slot, { script: upgradeScript, call, timeLimitMs });
  scripts.doubtAfter(reply);
  if (reply.status === 'unavailable') return reply;
  const answer = upgradeScript.decode(reply.value);
  switch (answer.status) {
    case 'malformed':
      return connection.malformed(answer);
    case 'granted':
      return reply.shortfall ?? answer;
    case 'gone':
      return { status: 'lost', reason: 'released-elsewhere' };
    case 'taken':
      return { status: 'lost', reason: 'stolen' };
    case 'quarantined':
      watch.quarantined(Math.ceil(answer.leftUs / 1_000));
      return connection.failure(
        'refused',
        'may have forgotten who holds a lock together with this one, and upgrades none yet ("restartGuard")',
      );
    case 'refused': {
      const busy = names[answer.position - 1];
      if (busy === undefined) return connection.malformed({ reply: reply.value });
      const { remainingMs, stands } = answer;
      return {
        status: 'held',
        key: busy.main.slice(prefix.length),
        remainingMs,
        checkAgainMs: stands || line === undefined ? remainingMs : UNTOLD_CHECK_MS,
        ...(stands && { ticket: 0 }),
      };
    }
  }
}
