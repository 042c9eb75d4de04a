import { error, ok } from '../finding.js';
import { fieldIn } from '../server.js';
import type { ServerCheck } from '../subject.js';

/** Which database the locks are in. One that the Redis user may not select is no connection, which is reported as such. */
export const database: ServerCheck = {
  name: 'database',
  async examine(server) {
    if (server.isClusterNode) return [];
    if (fieldIn(await server.info('cluster'), 'cluster_enabled') === '1')
      return [
        error(
          'It is a node of a Cluster: keys of other nodes cannot be locked over it.',
          'Give --cluster here, and the application a Cluster client.',
        ),
      ];
    return [ok(`Locks are in database ${String(server.database)}.`)];
  },
};
