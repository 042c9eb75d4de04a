import { beforeAll, describe, expect, it } from '@jest/globals';
import { Redis, ReplyError } from 'ioredis';
import { redisSource } from '../../lib/store/redis/client/redis-location.js';
import { isBroken, isPassing, isReply } from '../../lib/store/redis/client/reply-errors.js';
import { systemRuntime } from '../../lib/time/runtime.js';

beforeAll(() => {
  const client = new Redis({ lazyConnect: true });
  redisSource(client, systemRuntime);
  client.disconnect();
});

describe('errors of ioredis whose classes a minifier has renamed', () => {
  /** As a minifier leaves it: ioredis takes the name of an error from its class. */
  class E extends (ReplyError as typeof Error) {}

  it('are refusals of the server, if they were', () => {
    const error = new E('READONLY You cannot write against a read only replica.');
    expect(error.name).toBe('E');
    expect(isReply(error)).toBe(true);
    expect(isPassing(error)).toBe(true);
  });

  it('are broken connections, if they were', () => {
    const error = new Error('Reached the max retries per request limit (which is 0). Refer to …');
    expect(isBroken(error)).toBe(true);
    expect(isReply(error)).toBe(false);
  });

  it('of another copy of ioredis keep their name', () => {
    const error = Object.assign(new Error('WRONGTYPE'), { name: 'ReplyError' });
    expect(isReply(error)).toBe(true);
  });
});
