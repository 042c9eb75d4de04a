import type { RedisConnection } from './redis-connection.js';

/**
 * Looks once at the server and says what the operator should know. A server that is not there yet is no reason not to start: until
 * it is, every call answers `unavailable`.
 */
export async function probe(
  connection: RedisConnection,
  name: string,
  /** Any key that we may use: others may be forbidden. */
  key: string,
  timeLimitMs: number,
  warn: (message: string) => void,
): Promise<void> {
  const scripting = await connection.ask(timeLimitMs, ({ client }) =>
    client.eval('return 1', 1, key),
  );
  if (scripting.status === 'unavailable') {
    const [failure] = scripting.nodes;
    warn(
      `Redis at ${name} is not usable yet: ${failure?.message ?? 'no answer'}. Locks are refused (503) until it is; ` +
        'Holdfast needs the commands EVAL and EVALSHA there.',
    );
    return;
  }
  const info = await connection.ask(timeLimitMs, ({ client }) => client.info('memory'));
  if (info.status === 'unavailable') return; // INFO may be forbidden; nothing depends on it
  const policy = /maxmemory_policy:(\S+)/.exec(String(info.value))?.[1];
  if (policy !== undefined && policy !== 'noeviction') {
    warn(
      `Redis at ${name} has maxmemory-policy "${policy}": when memory is full it can evict locks that are held. ` +
        'Set "noeviction", or give locks a Redis of their own.',
    );
  }
}
