import { beforeAll, describe, expect, it } from '@jest/globals';
import { Redis, ReplyError } from 'ioredis';
import { redisSource } from '../../lib/store/redis/client/redis-location.js';
import {
  isBroken,
  isElsewhere,
  isPassing,
  isReply,
  withForeignKeys,
} from '../../lib/store/redis/client/reply-errors.js';
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

describe('an error of a key that lies at another node', () => {
  it.each([
    [true, 'MOVED 866 10.0.0.1:6379'],
    [true, "CROSSSLOT Keys in request don't hash to the same slot"],
    [false, 'MOVEDON'],
    [false, "NOPERM User app has no permissions to run the 'ASK' command"],
  ])('is known by how it begins: %j, %s', (isIt, message) => {
    expect(isElsewhere(message)).toBe(isIt);
  });
});

describe('the error of a script at a key that other software has written', () => {
  const keys = (count: number): string[] => Array.from({ length: count }, (_, at) => `k${at}`);
  const TEN = '"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9"';

  it.each([
    [1, '"k0"'],
    [10, TEN],
    [11, `${TEN} and 1 more`],
    [25, `${TEN} and 15 more`],
  ])('names ten of %d keys at most', (count, named) => {
    expect(withForeignKeys('WRONGTYPE of a key', keys(count))).toBe(
      `one of the keys ${named} holds what Holdfast did not write: delete it (WRONGTYPE of a key)`,
    );
  });

  it.each([
    ['of another kind', 'OOM command not allowed', keys(1)],
    ['without keys', 'WRONGTYPE of a key', []],
  ])('is left as it is where it is one %s', (_, message, given) => {
    expect(withForeignKeys(message, given)).toBe(message);
  });
});
