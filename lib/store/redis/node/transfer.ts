import type { TransferOutcome, TransferRequest } from '../../lock-store.js';
import { transferScript } from '../scripts/transfer.js';
import { afterGrant } from './acquire.js';
import { releaseGroup } from './release.js';
import type { Group, Server } from './server.js';

/**
 * Gives a lease another owner token at one node. Keys in several slots go one slot after the other, in one order: of
 * two callers that attach one lease, the one that has the first slot gets it.
 */
export async function transferAt(
  server: Server,
  request: TransferRequest,
): Promise<TransferOutcome> {
  const done: Group[] = [];
  for (const group of server.groups(request.keys)) {
    const { keys } = group;
    const outcome = await server.ask(transferScript, { ...request, keys, whileDown: 'waits' });
    if (outcome.status === 'lost' && done.length > 0) {
      // A lease that has lost a key is lost: no caller has the keys of it that were taken.
      const taken = { keys: request.keys, token: request.to };
      const undone = await Promise.all(done.map((each) => releaseGroup(server, each, taken)));
      return undone.find((undoing) => undoing.status === 'unavailable') ?? outcome;
    }
    if (outcome.status === 'unavailable') return done.length > 0 ? afterGrant(outcome) : outcome;
    if (outcome.status === 'lost') return outcome;
    done.push(group);
  }
  return { status: 'transferred' };
}
