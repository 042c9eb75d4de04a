import type { Command, TrialNames } from './server.js';

/** What a right is for. */
export type Purpose =
  /** Every lock. */
  | 'locks'
  /** To wake callers that wait. */
  | 'waiting'
  /** To find out what the server is. */
  | 'information'
  /** To name the connection. */
  | 'names'
  /** The option `replicas`. */
  | 'replicas'
  /** LockAdmin and this program. */
  | 'operators';

/** One right of the Redis user, as an ACL names it, and a command that needs no other. */
export interface Right {
  readonly name: string;
  readonly purpose: Purpose;
  readonly trial: (names: TrialNames) => Command;
}

/** What a trial leaves behind ends by itself. */
const LIFE_MS = 1_000;

const right = (name: string, purpose: Purpose, trial: Right['trial']): Right => ({
  name,
  purpose,
  trial,
});

/**
 * Each right is tried on names that no lock has. `ACL DRYRUN` would not do: only administrators may use it, and Redis
 * before 7 does not have it. It also does not know commands that the server has renamed or that a proxy refuses.
 */
export const RIGHTS: readonly Right[] = [
  right('eval', 'locks', ({ main }) => ['eval', 'return 1', 1, main]),
  right('evalsha', 'locks', ({ main }) => ['evalsha', '0'.repeat(40), 1, main]),
  right('set', 'locks', ({ main }) => ['set', main, 'trial', 'px', LIFE_MS]),
  right('get', 'locks', ({ main }) => ['get', main]),
  right('pttl', 'locks', ({ main }) => ['pttl', main]),
  right('pexpire', 'locks', ({ main }) => ['pexpire', main, LIFE_MS]),
  right('exists', 'locks', ({ main }) => ['exists', main]),
  right('incr', 'locks', ({ fence }) => ['incr', fence]),
  right('zadd', 'locks', ({ queue }) => ['zadd', queue, 1, 'trial']),
  right('zcard', 'locks', ({ queue }) => ['zcard', queue]),
  right('zcount', 'locks', ({ queue }) => ['zcount', queue, 0, 1]),
  right('zrange', 'locks', ({ queue }) => ['zrange', queue, 0, 1]),
  right('zrangebyscore', 'locks', ({ queue }) => ['zrangebyscore', queue, 0, 1]),
  right('zrevrange', 'locks', ({ queue }) => ['zrevrange', queue, 0, 1]),
  right('zscore', 'locks', ({ queue }) => ['zscore', queue, 'trial']),
  right('zrem', 'locks', ({ queue }) => ['zrem', queue, 'other']),
  right('zremrangebyrank', 'locks', ({ queue }) => ['zremrangebyrank', queue, 5, 6]),
  right('zremrangebyscore', 'locks', ({ queue }) => ['zremrangebyscore', queue, 5, 6]),
  right('hset', 'locks', ({ once }) => ['hset', once, 'state', 'trial']),
  right('hmget', 'locks', ({ once }) => ['hmget', once, 'state']),
  right('time', 'locks', () => ['time']),
  right('publish', 'waiting', () => ['publish', 'holdfast:trial', '']),
  right('pubsub|numsub', 'waiting', () => ['pubsub', 'numsub', 'holdfast:trial']),
  right('ping', 'waiting', () => ['ping']),
  right('info', 'information', () => ['info', 'server']),
  right('client|setname', 'names', () => ['client', 'setname', 'holdfast']),
  right('wait', 'replicas', () => ['wait', 0, 1]),
  right('scan', 'operators', () => ['scan', 0, 'count', 1]),
  right('type', 'operators', ({ main }) => ['type', main]),
  right('xadd', 'operators', ({ holders }) => ['xadd', holders, '*', 'trial', 'trial']),
  right('xrevrange', 'operators', ({ holders }) => ['xrevrange', holders, '+', '-', 'count', 1]),
  right('del', 'locks', ({ main, fence, queue, holders, once }) => [
    ...(['del', main, fence, queue, holders, once] as const),
  ]),
];
