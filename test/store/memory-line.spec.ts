import { beforeEach, describe, expect, it } from '@jest/globals';
import { LONGEST_CLAIM_MS } from '../../lib/store/claim.js';
import type { AcquireRequest, Granted, Held } from '../../lib/store/lock-store.js';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { newOwnerToken, type HoldMode } from '../../lib/store/owner-token.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { LINE } from './open-store.js';

const TTL_MS = 60_000;

let runtime: VirtualRuntime;
let store: MemoryLockStore;

beforeEach(() => {
  runtime = new VirtualRuntime();
  store = new MemoryLockStore(runtime);
});

type More = Partial<AcquireRequest> & { readonly mode?: HoldMode; readonly places?: number };

const request = (keys: string | readonly string[], { mode, places, ...more }: More = {}) => ({
  keys: [keys].flat(),
  token: newOwnerToken(runtime, { mode, places }),
  ttlMs: TTL_MS,
  ...more,
});

const held = async (key: string, more?: More) => {
  const asked = request(key, more);
  return { ...asked, ...((await store.acquire(asked)) as Granted) };
};

const waiting = async (key: string, more?: More): Promise<Held> =>
  (await store.acquire(request(key, { line: LINE, ...more }))) as Held;

describe('the line of a key, in memory,', () => {
  it('is asked again when the holder ends', async () => {
    await held('key');
    runtime.block(10_000);
    expect(await waiting('key')).toMatchObject({
      ...{ status: 'held', remainingMs: TTL_MS - 10_000, checkAgainMs: TTL_MS - 10_000 },
    });
  });

  it('lets no later caller take the places that its first caller waits for', async () => {
    await store.setLimit('key', 2);
    await waiting('key', { mode: 'limit:5', places: 3 });
    const later = await waiting('key', { mode: 'limit:5' });
    expect(later).toMatchObject({ status: 'held', remainingMs: LONGEST_CLAIM_MS });
  });

  it('lets a caller go ahead whose place was before all others', async () => {
    await held('key', { ttlMs: 1_000 });
    const { ticket } = await waiting('key');
    const earlier = { ...LINE, ticket: (ticket ?? 0) - 1 };
    runtime.block(1_001);
    expect(await store.acquire(request('key', { line: earlier }))).toMatchObject({
      status: 'granted',
    });
  });

  it.each([
    ['granted', 'the phase that it may join', 0],
    ['held', 'an earlier one', -1],
    ['held', 'none', undefined],
  ])('has a caller %s that would hold it together with others in %s', async (status, _, since) => {
    const { fencingToken } = await held('key', { mode: 'shared' });
    await waiting('key');
    const joins = since === undefined ? undefined : fencingToken + since;
    expect(await store.acquire(request('key', { mode: 'shared', joins }))).toMatchObject({
      status,
    });
  });

  it('says since when each of its callers waits', async () => {
    await held('key');
    runtime.block(5_000);
    await waiting('key');
    const { wallMs } = runtime.now();
    runtime.block(5_000);
    const [found] = await store.admin.look(['key']);
    expect(found?.line).toMatchObject([{ sinceMs: wallMs }]);
  });
});

describe('a caller of several keys that is refused at a later one, in memory,', () => {
  it.each<[string, readonly string[], boolean | undefined, Partial<AcquireRequest>]>([
    ['nothing that it did not ask for', [], undefined, {}],
    [
      'the keys before that one in the order of all',
      ['a', 'b'],
      true,
      { keeps: { limitMs: 10_000, ttlMs: 2_000, before: 0 } },
    ],
    [
      'not the first one, where that comes after it in the order of all',
      ['b'],
      true,
      { keeps: { limitMs: 10_000, ttlMs: 2_000, before: 2 } },
    ],
    [
      'nothing where the busy one was held for long',
      [],
      false,
      { keeps: { limitMs: 1_000, ttlMs: 2_000, before: 0 } },
    ],
  ])('keeps %s: %j', async (_, keys, kept, more) => {
    await held('c');
    runtime.block(5_000);
    const asked = request(['a', 'b', 'c', 'd'], more);
    expect(((await store.acquire(asked)) as Held).kept).toBe(kept);
    const found = await store.admin.look(['a', 'b', 'd']);
    const mine = found.filter(({ holders }) => holders.some(({ token }) => token === asked.token));
    expect(mine.map(({ key }) => key)).toEqual(keys);
  });
});

describe('the arrivals at a key, in memory,', () => {
  it('have numbers that grow, and the last one is known', async () => {
    const [first, second] = [await store.admin.arrive('key'), await store.admin.arrive('key')];
    expect(second).toBeGreaterThan(first);
    expect(await store.admin.look(['key'])).toMatchObject([{ newest: second }]);
  });
});
