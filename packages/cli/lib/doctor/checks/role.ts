import { masterRemedy } from '../../place-options.js';
import { masterIn } from '../../servers.js';
import { error, ok, unknown, warning } from '../finding.js';
import { fieldIn } from '../server.js';
import type { ServerCheck } from '../subject.js';

/** Whether it is a master. */
export const role: ServerCheck = {
  name: 'role',
  async examine(server, { kind, target }) {
    const info = await server.info('replication');
    if (info.status === 'failed') return [unknown('Whether it is a master', info.message)];
    const master = masterIn(info);
    if (master !== undefined)
      return [
        error(
          `It is a replica of ${master}: it grants no locks.`,
          masterRemedy(target, server.name, master),
        ),
      ];
    if (fieldIn(info, 'role') !== 'master')
      return [unknown('Whether it is a master', 'INFO does not name a role')];
    const replicas = Number(fieldIn(info, 'connected_slaves') ?? 0);
    if (replicas === 0) return [ok('It is a master without replicas.')];
    const text = `It is a master with ${String(replicas)} replica${replicas === 1 ? '' : 's'}.`;
    if (kind !== 'several masters')
      return [
        ok(
          `${text} A fail-over can forget the newest locks, unless the option "replicas" waits for them.`,
        ),
      ];
    return [
      warning(
        `${text} In a quorum a replica that takes over may have forgotten leases.`,
        'Leave fail-over off for masters of a quorum, or use the option "restartGuard".',
      ),
    ];
  },
};
