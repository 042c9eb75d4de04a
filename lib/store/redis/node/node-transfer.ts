import type { TransferOutcome, TransferRequest, Unavailable } from '../../lock-store.js';
import { transferScript } from '../scripts/transfer.js';
import type { Group } from './key-groups.js';
import type { NodeRelease } from './node-release.js';
import type { NodeScripts } from './node-scripts.js';

/**
 * Gives a lease another owner token at one node. Keys in several slots go one slot after the other, in one order: of
 * two callers that attach one lease, the one that has the first slot gets it.
 */
export async function transferAt(
  scripts: NodeScripts,
  release: NodeRelease,
  request: TransferRequest,
): Promise<TransferOutcome> {
  const done: Group[] = [];
  for (const group of scripts.parts.slots.groups(request.keys)) {
    const outcome = await transferGroup(scripts, group, request);
    if (outcome.status === 'lost' && done.length > 0) {
      // A lease that has lost a key is lost: no caller has the keys of it that were taken.
      const { keys, to: token } = request;
      const undone = await Promise.all(
        done.map((each) => release.releaseGroup(each, { keys, token })),
      );
      return undone.find((undoing) => undoing.status === 'unavailable') ?? outcome;
    }
    if (outcome.status === 'unavailable') return done.length > 0 ? afterWrite(outcome) : outcome;
    if (outcome.status === 'lost') return outcome;
    done.push(group);
  }
  return { status: 'transferred' };
}

/** This request may never have left the process, but one before it did. */
function afterWrite({ sent: _, ...outage }: Unavailable): Unavailable {
  return outage;
}

async function transferGroup(
  scripts: NodeScripts,
  { slot, names }: Group,
  { token, to, ttlMs, lastToken }: TransferRequest,
): Promise<TransferOutcome> {
  const { connection, options, lineMode } = scripts.parts;
  const { fenceKeepMs } = options;
  const call = transferScript.encode({ names, token, to, ttlMs, fenceKeepMs, lineMode });
  const timeLimitMs = scripts.timeLimitMs(ttlMs);
  const request = { script: transferScript, call, timeLimitMs, whileDown: 'waits' } as const;
  const reply = await scripts.write(slot, request);
  scripts.doubtAfter(reply);
  if (reply.status === 'unavailable') return reply;
  const answer = transferScript.decode(reply.value);
  switch (answer.status) {
    case 'malformed':
      return connection.malformed(answer);
    case 'transferred':
      return reply.shortfall ?? answer;
    case 'gone':
      return { status: 'lost', reason: 'gone' };
    case 'taken':
      // Every grant raises the fence.
      return { status: 'lost', reason: answer.fence > lastToken ? 'stolen' : 'attached' };
  }
}
