import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ChildScript } from '../support/child-script.js';
import { RedisServer } from '../support/redis-server.js';

const KEYS = 100_000;
const SCRIPT = new URL('./locks-and-releases.ts', import.meta.url);

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});

afterAll(() => server.stop());

describe('memory', () => {
  it.each(['memory', 'redis'])(
    'TR-42 keeps nothing of 100,000 keys that were locked and released: %s store',
    async (store) => {
      const where = store === 'redis' ? server.url : store;
      const child = new ChildScript(SCRIPT, [where, String(KEYS)], ['--expose-gc']);
      const heap = JSON.parse(await child.output) as { before: number; after: number };
      expect(heap.after).toBeLessThan(heap.before * 1.1);
    },
    120_000,
  );
});
