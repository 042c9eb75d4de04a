import { untilConnected, withoutEnd } from '../connection-end.js';
import { error, ok, type Found } from '../finding.js';
import type { CommonCheck } from '../subject.js';

/** Whether a lock can be granted now: one is acquired and released at each server, under a name that no caller can lock. */
export const grants: CommonCheck = {
  name: 'grants',
  async examine({ session }) {
    const { nodes, quorum, hasQuorum } = await untilConnected(
      () => session.locks.health(),
      (health) => health.nodes.flatMap(({ problem = [] }) => problem),
    );
    const problems = nodes.filter(({ problem }) => problem !== undefined);
    const found: Found[] = problems.map(({ node, problem = '' }) =>
      error(
        `${node} grants no locks: ${withoutEnd(problem).replace(/\.$/, '')}.`,
        'See what is said of this server.',
      ),
    );
    if (!hasQuorum)
      found.push(
        error(
          `No lock can be granted now: ${String(quorum)} of the places that vote have to agree.`,
          'Correct what is wrong above.',
        ),
      );
    return found.length > 0 ? found : [ok('A lock was granted and released at each server.')];
  },
};
