import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from '../../lib/errors.js';
import { lockStore, redisLocations } from '../../lib/options/location.js';

const at = (redis: unknown) => redisLocations.resolve(redis, 'redis');

class Settings {
  readonly host = 'localhost';
}

/** As `JSON.parse` with a reviver, or a parser of configurations, may leave it. */
const withoutPrototype = Object.assign(Object.create(null) as object, { host: 'localhost' });

describe('where Redis is', () => {
  it.each<[string, unknown]>([
    ['a URL', 'redis://localhost'],
    ['a URL with TLS', 'rediss://localhost:6380/1'],
    ['a host', { host: 'localhost' }],
    ['a port', { port: 6380 }],
    ['a socket', { path: '/run/redis.sock' }],
    ['sentinels', { sentinels: [{ host: 'a', port: 26379 }], name: 'main' }],
    ['options without a prototype', withoutPrototype],
    ['a client of any copy of ioredis', { duplicate: () => undefined, isCluster: false }],
  ])('is given by %s', (_what, redis) => {
    const [node, ...others] = at(redis);
    expect(node).toBe(redis);
    expect(others).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['options with none', { password: 'secret' }],
    ['no options at all', {}],
    ['options that only inherit one', Object.create({ host: 'localhost' })],
    ['an object of some class', new Settings()],
    ['a Map', new Map([['host', 'localhost']])],
  ])('is not told without an address: %s', (_what, redis) => {
    expect(() => at(redis)).toThrow(
      new LockConfigurationError(
        'Option "redis" must say where Redis is: a URL as text, a client of ioredis, iovalkey, node-redis or valkey-glide, or ioredis options with one of host, port, path, sentinels. Give clients themselves, such as createClient(…) of node-redis returns, and not their options.',
      ),
    );
  });

  it.each([
    { host: 'redis://localhost' },
    { host: 'user:secret@localhost', port: 6379 },
    { path: 'redis://localhost' },
    { host: 'localhost', path: 'secret@localhost' },
  ])('is not told by a URL in the place of a host or path: %j', (redis) => {
    expect(() => at(redis)).toThrow(
      new LockConfigurationError(
        `Option "redis" has a URL, or a part of one, as its host or path. Give the URL itself: redis: 'redis://…'.`,
      ),
    );
  });

  it.each([
    ['redis://a,redis://b', ['redis://a', 'redis://b']],
    ['redis://:x,y@a , redis://:,@b', ['redis://:x,y@a', 'redis://:,@b']],
    ['rediss://a,\n  redis+unix:///b', ['rediss://a', 'redis+unix:///b']],
  ])(
    'is not told by several URLs in one text, and the error says how to make a list: %j',
    (redis, list) => {
      let message = '';
      try {
        at(redis);
      } catch (error) {
        message = (error as LockConfigurationError).message;
      }
      const [, separator = ''] =
        /^Option "redis" holds several URLs in one text\. Give a list of them: text\.split\(\/(.*)\/\)\.$/.exec(
          message,
        ) ?? [];
      expect(separator).not.toBe('');
      expect(at(redis.split(new RegExp(separator)))).toEqual(list);
    },
  );

  it.each(['see redis://a', ' redis://a', 'redis://', 'http://a'])(
    'is not told by a text that is no URL of Redis: "%s"',
    (redis) => {
      expect(() => at(redis)).toThrow(
        `Option "redis" must be a URL such as 'redis://localhost:6379', received `,
      );
    },
  );

  it('is no client of ioredis-mock, and the error says what to use in tests', () => {
    const mock = {
      ...{ shaScripts: {}, customCommands: {}, keyData: {}, data: new Map() },
      duplicate: () => undefined,
    };
    expect(() => at(mock)).toThrow(LockConfigurationError);
    expect(() => at(mock)).toThrow(
      /^Option "redis" is a client of ioredis-mock, .* import LockTestingModule of 'nestjs-holdfast\/testing'/,
    );
  });

  it('is named by its place in a list', () => {
    expect(() => at(['redis://a', {}])).toThrow('Option "redis[1]" must say where Redis is: ');
  });
});

describe('a store', () => {
  it.each([null, 7, {}])('is not %p', (store) => {
    expect(() => lockStore.resolve(store, 'store')).toThrow(
      `Option "store" must be 'memory' or a LockDriver, an object with the methods acquire, extend, release, received `,
    );
  });
});
