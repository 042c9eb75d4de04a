import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from '../../lib/errors.js';
import {
  refuseNoOptions,
  resolveOptions,
  ttlToMs,
  ttlWithin,
} from '../../lib/options/resolve-options.js';
import type { LockModuleOptions } from '../../lib/options/lock-module-options.js';

const resolved = (options: object) => resolveOptions({ store: 'memory', ...options });
const onRedis = (options: object) => resolveOptions({ redis: 'redis://a', ...options });

/** As `isRedisClient` knows one. */
const client = (isCluster: boolean) =>
  ({ duplicate: () => undefined, isCluster }) as unknown as NonNullable<LockModuleOptions['redis']>;

describe('no options', () => {
  it.each<[unknown, string]>([
    [undefined, 'undefined'],
    [null, 'null'],
    ['redis://localhost', '"redis://localhost"'],
    [6379, '6379'],
  ])('are refused, with what to write: %p', (options, shown) => {
    const message = `LockModule needs an options object, received ${shown}. Write LockModule.forRoot({ redis: 'redis://localhost:6379' }).`;
    expect(() => {
      refuseNoOptions(options);
    }).toThrow(new LockConfigurationError(message));
    expect(() => resolveOptions(options as never)).toThrow(new LockConfigurationError(message));
  });

  it('are not what an object is', () => {
    expect(() => {
      refuseNoOptions({});
    }).not.toThrow();
  });
});

describe('option "handoff"', () => {
  it('lets callers take no turns where it is false', () => {
    expect(resolved({ handoff: false }).handoff).toEqual({ turns: 1, tenureMs: 0 });
    expect(resolved({ handoff: { turns: 1 } }).handoff).toMatchObject({ turns: 1 });
  });

  it('takes at most 1,024 turns', () => {
    expect(resolved({ handoff: { turns: 1_024 } }).handoff.turns).toBe(1_024);
    expect(() => resolved({ handoff: { turns: 1_025 } })).toThrow('1024');
  });

  it.each<[object, object]>([
    [{}, { turns: 16, tenureMs: 20 }],
    [
      { turns: 2, tenure: '5ms' },
      { turns: 2, tenureMs: 5 },
    ],
    [{ tenure: '1ms' }, { tenureMs: 1 }],
  ])('takes %j', (handoff, bounds) => {
    expect(resolved({ handoff }).handoff).toMatchObject(bounds);
  });
});

describe('option "restartGuard"', () => {
  const guard = { maxTtlMs: 1_000, bootstrap: false };

  it('allows a TTL up to its own', () => {
    expect(ttlWithin(999, guard)).toBe(999);
    expect(ttlWithin(1_000, guard)).toBe(1_000);
    expect(ttlWithin(1_001, undefined)).toBe(1_001);
    expect(() => ttlWithin(1_001, guard)).toThrow(
      'A TTL of 1001 ms is longer than "restartGuard.maxTtl", 1000 ms: ',
    );
  });

  it('is taken for a client of one Redis', () => {
    const { restartGuard } = resolveOptions({
      redis: client(false),
      restartGuard: { maxTtl: '1m' },
    });
    expect(restartGuard).toEqual({ maxTtlMs: 60_000, bootstrap: false });
  });

  it('is refused for a Cluster', () => {
    expect(() => resolveOptions({ redis: client(true), restartGuard: { maxTtl: '1m' } })).toThrow(
      'Option "restartGuard" does not work on a Redis Cluster: ',
    );
  });
});

describe('option "replicas"', () => {
  it('is taken with a timeout shorter than that of a request', () => {
    const { replicas } = onRedis({ replicas: { ack: 1, timeout: 99 }, nodeTimeout: 100 });
    expect(replicas).toEqual({ ack: 1, timeoutMs: 99 });
  });

  it('is refused with one as long', () => {
    expect(() => onRedis({ replicas: { ack: 1, timeout: 100 }, nodeTimeout: 100 })).toThrow(
      'Option "replicas.timeout" (100 ms) must be shorter than "nodeTimeout" (100 ms), in which it is contained.',
    );
  });
});

describe('a TTL that is given to a call', () => {
  it('is named in messages', () => {
    expect(ttlToMs('1s', undefined)).toBe(1_000);
    expect(() => ttlToMs(49, undefined)).toThrow(
      'Option "ttl" must be a duration of at least 50 ms, received 49, ',
    );
  });
});
