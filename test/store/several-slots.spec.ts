import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { AcquireRequest, LockStore } from '../../lib/store/lock-store.js';
import type { RedisSource } from '../../lib/store/redis/client/redis-client.js';
import { redisLockStore } from '../../lib/store/redis/redis-lock-store.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { FakeRedis, LOST } from '../support/fake-redis.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { LINE, request } from './open-store.js';

let runtime: VirtualRuntime;
let redis: FakeRedis;
let store: LockStore;

beforeEach(async () => {
  runtime = new VirtualRuntime();
  redis = new FakeRedis(runtime);
  const source = Object.assign(redis as RedisSource, { isCluster: true });
  store = redisLockStore({
    ...{ redis: ['redis://fake'], keyPrefix: 'lock:', nodeTimeoutMs: 1_000, fenceKeepMs: 600_000 },
    ...{ warn: () => undefined, runtime, sourceOf: () => source },
  });
  await during(store.open());
});

afterEach(async () => {
  const closing = store.close();
  await runtime.advance(2_000);
  await closing;
});

async function during<T>(outcome: Promise<T>): Promise<T> {
  await runtime.advance(10);
  return outcome;
}

/** What is answered to a script for each of the keys, all of which lie in several slots. */
function answerTo(script: { readonly sha: string }, answers: Readonly<Record<string, unknown>>) {
  const known = redis.answer;
  redis.answer = (name, args) => {
    const answer = args[0] === script.sha ? answers[String(args[2])] : undefined;
    return answer ?? known(name, args);
  };
}

const OOM = new Error('OOM command not allowed');

describe('keys in several slots of a Cluster', () => {
  it.each<[string, unknown, unknown]>([
    ['released', 1, 1],
    ['not-held', 1, 0],
    ['not-held', 0, 1],
    ['unavailable', 1, OOM],
    ['unavailable', 0, OOM],
    ['unavailable', OOM, 0],
  ])('are %s where the first has the reply %j and the second %j', async (status, a, b) => {
    answerTo(releaseScript, { 'lock:a': a, 'lock:b': b });
    expect(await during(store.release(request(['a', 'b'])))).toMatchObject({ status });
  });

  it('are asked for in their order, but first where the last request failed', async () => {
    const asked = async (): Promise<readonly unknown[]> => {
      redis.received.length = 0;
      await during(store.acquire(request(['a', 'b', 'c'])));
      return redis.received
        .filter(([, script]) => script === acquireScript.sha)
        .map(([, , , main]) => main);
    };
    expect(await asked()).toEqual(['lock:a', 'lock:b', 'lock:c']);
    const known = redis.answer;
    answerTo(acquireScript, { 'lock:c': OOM });
    expect(await asked()).toEqual(['lock:a', 'lock:b', 'lock:c']);
    expect(await asked()).toEqual(['lock:c']);
    redis.answer = known;
    expect(await asked()).toEqual(['lock:c', 'lock:a', 'lock:b']);
    expect(await asked()).toEqual(['lock:a', 'lock:b', 'lock:c']);
  });

  it('are of leases that are renewed each by the answers to its own keys', async () => {
    answerTo(extendScript, { 'lock:c': LOST });
    const leases = [request(['a', 'c']), request(['a', 'b'])];
    const decided: unknown[] = [];
    const extending = store.extend(leases, (index, { status }) => decided.push([index, status]));
    await runtime.advance(10);
    expect(decided).toEqual([[1, 'extended']]);
    await runtime.advance(1_000);
    expect((await extending).map(({ status }) => status)).toEqual(['unavailable', 'extended']);
    expect(decided).toEqual([
      [1, 'extended'],
      [0, 'unavailable'],
    ]);
  });

  it('go to one script where they lie in one slot, all of them', async () => {
    redis.received.length = 0;
    await during(store.acquire(request(['k9', 'other', 'k2390'])));
    const calls = redis.received.filter(([, script]) => script === acquireScript.sha);
    expect(calls.map((call) => call.filter((part) => String(part).startsWith('lock:')))).toEqual([
      ['lock:k9', 'lock:k2390'],
      ['lock:other'],
    ]);
  });

  it('cannot guard a write: what to do is said', async () => {
    const writing = store.write({ ...request(['a', 'b']), commands: [['incr', 'n']] });
    expect(await during(writing)).toEqual({
      status: 'refused',
      problem: expect.stringMatching(
        /several slots .* Give "keyPrefix" a hash tag, such as '\{app\}:', or lock one key\.$/,
      ),
    });
  });
});

describe('a caller of keys in several slots that is refused at one of them', () => {
  /** As the script refuses: by another owner, with a place in line. */
  const HELD = [0, 1, 1, 30_000, 'holdfast:other', '7'];
  const KEEPS = { limitMs: 10_000, ttlMs: 1_000, before: 0 };

  /** What it gives back. */
  async function givenBack(more: Partial<AcquireRequest>): Promise<readonly unknown[]> {
    redis.received.length = 0;
    const asking = store.acquire({ ...request(['a', 'b', 'c']), ...more });
    expect(await during(asking)).toMatchObject({ status: 'held', key: 'b' });
    return redis.received
      .filter(([, script]) => script === releaseScript.sha)
      .map(([, , , main]) => main);
  }

  beforeEach(async () => {
    await during(store.listen(() => undefined));
    answerTo(acquireScript, { 'lock:b': HELD });
  });

  it.each<[string, readonly string[], Partial<AcquireRequest>]>([
    ['what it was granted', ['lock:a'], {}],
    ['also what it may have had before, if it waits', ['lock:a', 'lock:c'], { line: LINE }],
    [
      'only what comes after that one, if it may keep keys',
      ['lock:c'],
      { line: LINE, keeps: KEEPS },
    ],
  ])('gives back %s: %j', async (_, given, more) => {
    expect(await givenBack(more)).toEqual(given);
  });

  it('hears of an outage where it cannot give back a key', async () => {
    answerTo(releaseScript, { 'lock:a': OOM });
    expect(await during(store.acquire(request(['a', 'b'])))).toMatchObject({
      ...{ status: 'unavailable', nodes: [{ kind: 'error' }] },
    });
  });
});
