import { lasting } from '../../text/times.js';
import { error, ok, unknown, warning, type Found } from '../finding.js';
import { fieldIn, type Server } from '../server.js';
import type { ServerCheck } from '../subject.js';

/** What the option `restartGuard` has written. */
export const restartGuard: ServerCheck = {
  name: 'restart guard',
  async examine(server, { kind }) {
    if (server.isClusterNode) return [];
    const epoch = await server.epoch();
    if (epoch.status === 'failed') return [unknown('The restart guard', epoch.message)];
    if (epoch.value === null) return [unused(kind === 'several masters')];
    const [, run, over] = /^(\w+) (\d+)$/.exec(textOf(epoch.value)) ?? [];
    if (run === undefined)
      return [
        error(
          `The key "${server.prefix}{epoch}" has a value that Holdfast did not write.`,
          'Delete it. A service with "restartGuard" then takes the server for one that was restarted, and waits for maxTtl.',
        ),
      ];
    const leftMs = Number(over) / 1_000 - server.runtime.now().wallMs;
    if (leftMs > 0)
      return [
        error(
          `It grants no locks for another ${lasting(leftMs)}: it was restarted or lost its data, and waits for maxTtl.`,
          'Wait. Locks that it may have forgotten are over then.',
        ),
      ];
    return [await restarted(server, run)];
  },
};

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const unused = (isQuorum: boolean): Found =>
  isQuorum
    ? warning(
        'The option "restartGuard" is not used here: a master that restarts without its data can grant a lock that is held.',
        'Give restartGuard: { maxTtl } with the longest TTL of any lock, or write everything to disk (appendfsync always).',
      )
    : ok('The option "restartGuard" is not used here.');

async function restarted(server: Server, run: string): Promise<Found> {
  const current = fieldIn(await server.info('server'), 'run_id');
  if (current === undefined || current === run)
    return ok(
      'The option "restartGuard" is used, and the server remembers its locks. maxTtl has to be the same in all applications.',
    );
  return warning(
    'The server was restarted since a service with "restartGuard" used it last: with the next lock it begins to wait for maxTtl.',
    'Nothing has to be done. Locks are refused (503) for that time.',
  );
}
