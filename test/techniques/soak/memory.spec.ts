import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ChildScript } from '../../support/child-script.js';
import { RedisServer } from '../../support/redis-server.js';

/** A tenth of the heap before is 100 bytes and more of each key: less than a leftover entry of a map, with its key. */
const KEYS = 100_000;
/** So many that they are most of the heap. */
const HELD = 100_000;
const CALLERS = 10_000;
const LIMIT_MS = 120_000;

const LOCKS_AND_RELEASES = new URL('./locks-and-releases.ts', import.meta.url);
const HELD_AT_ONCE = new URL('./held-at-once.ts', import.meta.url);
const CALLERS_IN_LINE = new URL('./callers-in-line.ts', import.meta.url);

/** What all of the scripts print. */
interface Heap {
  readonly before: number;
  readonly after: number;
}

interface Held extends Heap {
  readonly full: number;
  readonly lost: number;
  readonly renewed: number;
  readonly released: number;
  readonly timers: number;
  readonly timeouts: number;
}

interface Waited extends Heap {
  readonly served: number;
  readonly overlaps: number;
  readonly isInOrder: boolean;
  readonly left: readonly string[];
  readonly timers: number;
}

let server: RedisServer;
const children: ChildScript[] = [];

async function play<Result extends Heap>(
  script: URL,
  ...args: readonly (string | number)[]
): Promise<Result> {
  // With room for the objects of a burst, or each of them is copied twice before it is garbage.
  const nodeOptions = ['--expose-gc', '--max-semi-space-size=64'];
  const child = new ChildScript(script, args.map(String), nodeOptions);
  children.push(child);
  return JSON.parse(await child.output) as Result;
}

beforeAll(async () => {
  server = await RedisServer.start();
});

afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()));
  await server.command('FLUSHALL');
});

afterAll(() => server.stop());

describe('memory', () => {
  it.each([
    ['memory', 0],
    ['redis', 0],
    ['redis', 50],
  ])(
    'TR-42 keeps nothing of many keys that were locked and released: %s store, minHold %d ms',
    async (store, minHoldMs) => {
      const where = store === 'redis' ? server.url : store;
      const heap = await play(LOCKS_AND_RELEASES, where, KEYS, minHoldMs);
      expect(heap.after).toBeLessThan(heap.before * 1.1);
    },
    LIMIT_MS,
  );

  it(
    'keeps nothing of many locks that were held, and renewed, at once, with one timer for all of them',
    async () => {
      const held = await play<Held>(HELD_AT_ONCE, server.url, HELD);
      expect(held).toMatchObject({ lost: 0, renewed: HELD, released: HELD, timers: 1 });
      expect(held.timeouts).toBeLessThan(5);
      expect(held.full).toBeGreaterThan(held.before * 2); // they were there
      expect(held.after).toBeLessThan(held.before * 1.1);
      const left = (await server.command('KEYS', '*')) as string[];
      expect(left.filter((name) => !name.endsWith(':fence'))).toEqual([]);
    },
    LIMIT_MS,
  );

  it.each([
    ['for one key', 'one key', {}],
    ['for one key, without hand-off', 'one key', { handoff: false }],
    ['for a key each', 'a key each', {}],
  ])(
    'keeps nothing of many callers who waited %s, and were served in their order',
    async (_how, what, options) => {
      const waited = await play<Waited>(
        CALLERS_IN_LINE,
        server.url,
        CALLERS,
        what,
        JSON.stringify(options),
      );
      expect(waited).toMatchObject({ served: CALLERS, overlaps: 0, left: [] });
      // Those who wait for keys of their own need not come one after the other.
      if (what === 'one key') expect(waited.isInOrder).toBe(true);
      // The line's own, and the limits of the few requests that are on their way.
      expect(waited.timers).toBeLessThan(100);
      expect(waited.after).toBeLessThan(waited.before * 1.1);
    },
    LIMIT_MS,
  );
});
