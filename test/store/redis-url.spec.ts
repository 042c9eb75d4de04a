import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from 'nestjs-holdfast';
import { socketAt, type SocketLocation } from '../../lib/store/redis/client/redis-url.js';

describe('a URL of a Unix socket', () => {
  it.each<[string, SocketLocation | undefined]>([
    ['unix:///run/redis.sock', { path: '/run/redis.sock' }],
    ['unix:///run/redis.sock?db=2', { path: '/run/redis.sock', database: '2' }],
    [
      'redis+unix://us%65r:s%3Acret@/run/redis%20.sock',
      { path: '/run/redis .sock', username: 'user', password: 's:cret' },
    ],
    ['unix://:secret@/run/redis.sock', { path: '/run/redis.sock', password: 'secret' }],
    ['redis://h:7000', undefined],
  ])('says where the socket is, and nothing that is not in it: %s', (url, expected) => {
    expect(socketAt(url)).toStrictEqual(expected);
  });

  it.each(['unix://', 'unix://run/redis.sock', 'unix:///run/redis.sock?name=2'])(
    'that leads nowhere is a mistake in the configuration: %s',
    (url) => {
      expect(() => socketAt(url)).toThrow(LockConfigurationError);
    },
  );
});
