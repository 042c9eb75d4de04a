import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { RedisServer } from '../support/redis-server.js';
import { openStore, request } from './open-store.js';

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});

afterAll(() => server.stop());

it.each([
  ['lock[1]?', 'a*b'],
  ['lock\\', '[a-c]'],
  ['^lock', 'a?b'],
])(
  'keys are listed by names that are no patterns, with the prefix "%s": %s',
  async (keyPrefix, key) => {
    const { store } = await openStore({ redis: server.url, keyPrefix });
    try {
      for (const each of [key, `${key}:1`, 'aaab', 'a']) await store.acquire(request(each));
      const listed: string[] = [];
      for await (const keys of store.admin.keys(key)) listed.push(...keys);
      expect(listed.sort()).toEqual([key, `${key}:1`]);
    } finally {
      await store.close();
    }
  },
);
