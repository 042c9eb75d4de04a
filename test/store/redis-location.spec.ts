import { describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { LockConfigurationError, LockService } from 'nestjs-holdfast';
import { inspect } from 'node:util';
import { systemRuntime } from '../../lib/time/runtime.js';
import { redisSource } from '../../lib/store/redis/client/redis-location.js';

function failureOf(action: () => unknown): Error {
  try {
    action();
  } catch (error) {
    return error as Error;
  }
  throw new Error('it did not fail');
}

describe('a URL that cannot be read', () => {
  it.each([
    ['redis://:S3CRET@h:99999', '"redis://***@h:99999"'],
    ['redis://user:S3CRET@h:99999/3', '"redis://***@h:99999/3"'],
    ['redis://:S3%CRET@h', '"redis://***@h"'],
    ['redis://:S3#CRET@h', '"redis://***@h"'],
    ['redis://:S3/CRET@h:6379', '"redis://***@h:6379"'],
    ['redis://:S3CRET', '"redis://:***"'],
    ['redis://h:99999:S3CRET', '"redis://h:***"'],
    ['redis://h:99999?password=S3CRET', '"redis://h:99999?password=***"'],
    ['redis://h:99999', '"redis://h:99999"'],
  ])('is a mistake in the configuration, told without the password: %s', (redis, shown) => {
    const error = failureOf(() => new LockService({ redis }));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toContain(`received ${shown}`);
    expect(error.cause).toBeUndefined();
    // What Nest prints of it at the start.
    expect(inspect(error, { showHidden: true, depth: 5 })).not.toMatch(/S3|CRET/);
  });

  it('of a node of the Cluster that was given is told without the password too', () => {
    const cluster = new Cluster(['redis://:S3CRET@h:99999'], { lazyConnect: true });
    const error = failureOf(() => redisSource(cluster, systemRuntime));
    cluster.disconnect();
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(inspect(error, { showHidden: true, depth: 5 })).not.toContain('S3CRET');
  });
});

describe('a database that is no number', () => {
  it.each([
    ['redis://localhost:6790/abc', '"abc" of localhost:6790'],
    ['redis://:S3CRET@localhost:6790/abc', '"abc" of localhost:6790'],
    ['redis://localhost:6790/-1', '"-1" of localhost:6790'],
  ])('is named as it was given: %s', (redis, shown) => {
    const error = failureOf(() => new LockService({ redis }));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toContain(`names the database ${shown}`);
  });
});
