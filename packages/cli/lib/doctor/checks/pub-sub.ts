import { withoutEnd } from '../connection-end.js';
import { ok, warning, type Found } from '../finding.js';
import type { ServerCheck } from '../subject.js';

/** Whether a message arrives: waiting callers are woken by one. */
export const pubSub: ServerCheck = {
  name: 'pub/sub',
  async examine({ isClusterNode, trials }) {
    const names = trials.trialNames();
    if (!isClusterNode || names === undefined) {
      const problem = await trials.tryMessage();
      return [problem === undefined ? ok('A message arrives.') : without(problem)];
    }
    const problem = await trials.tryMessage(names);
    if (problem === undefined) return [ok('A message arrives (sharded pub/sub).')];
    const plain = await trials.tryMessage();
    if (plain !== undefined) return [without(plain)];
    return [
      warning(
        `Sharded pub/sub does not work (${withoutEnd(problem)}), so plain pub/sub is used: a process that dies while it waits costs the next one up to 1 s.`,
        'Use Redis 7 or later, and allow the Redis user +ssubscribe +spublish +pubsub|shardnumsub &holdfast:*.',
      ),
    ];
  },
};

const without = (problem: string): Found =>
  warning(
    `No message arrives (${withoutEnd(problem)}): callers that wait poll every 500 ms instead, and "show" knows no methods and no waiting callers.`,
    'Allow the Redis user +subscribe +publish +pubsub|numsub &holdfast:*, and proxies to pass pub/sub on.',
  );
