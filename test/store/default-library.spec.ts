import { createRequire } from 'node:module';
import { describe, expect, it, jest } from '@jest/globals';
import type { NodeRedisClient } from '../../lib/store/redis/client/node-redis/node-redis-shape.js';
import { optionsOf } from '../../lib/store/redis/client/node-redis/node-redis-shape.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const require = createRequire(import.meta.url);

jest.unstable_mockModule('../../lib/store/redis/client/installed.cjs', () => ({
  default: (name: string): unknown => (name === 'redis' ? require(name) : undefined),
}));

const { clusterAt, sourceAt } = await import('../../lib/store/redis/client/default-library.js');

describe('where only node-redis is installed, a Cluster at some URLs', () => {
  const defaultsAt = (...urls: string[]) => optionsOf(clusterAt(urls) as NodeRedisClient).defaults;

  it('has the user, the password and TLS of the first for all of its nodes', () => {
    expect(defaultsAt('rediss://us%65r:s%3Acret@h:7000', 'redis://i:7001')).toMatchObject({
      ...{ username: 'user', password: 's:cret' },
      socket: { tls: true },
    });
    const plain = defaultsAt('redis://h:7000', 'rediss://user:secret@i:7001');
    expect(plain?.username).toBeUndefined();
    expect(plain?.password).toBeUndefined();
    expect(plain?.socket?.tls).toBeFalsy();
  });
});

describe('where only node-redis is installed, a URL that cannot be read', () => {
  it.each([
    ['redis://user:S3CRET@h:99999/3', 'redis://***@h:99999/3'],
    ['redis://:S3CRET', 'redis://:***'],
    ['redis://h:99999:S3CRET', 'redis://h:***'],
    ['redis://h:99999', 'redis://h:99999'],
    ['redis://h:99999/3', 'redis://h:99999/3'],
  ])('is shown without the password: %s', (url, shown) => {
    const read = (): unknown => sourceAt(url, new VirtualRuntime());
    expect(read).toThrow(`received '${shown}'.`);
    expect(() => clusterAt([url])).toThrow(`received '${shown}'.`);
  });
});
