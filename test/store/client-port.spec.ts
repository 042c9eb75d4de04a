import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LineCall, LockStore } from '../../lib/store/lock-store.js';
import type { ReplicaOptions } from '../../lib/store/redis/node/acknowledged-writes.js';
import { redisLockStore } from '../../lib/store/redis/redis-lock-store.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { give, take } from '../../lib/store/redis/scripts/plain.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import { FakeRedis, LOST, RETRY_MS } from '../support/fake-redis.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { LINE, request } from './open-store.js';

const NODE_TIMEOUT_MS = 1_000;

let runtime: VirtualRuntime;
let redis: FakeRedis;
let store: LockStore;
let warnings: string[];

const openStore = async (replicas?: ReplicaOptions): Promise<LockStore> => {
  const opened = redisLockStore({
    redis: ['redis://fake'],
    keyPrefix: 'lock:',
    nodeTimeoutMs: NODE_TIMEOUT_MS,
    fenceKeepMs: 600_000,
    replicas,
    warn: (message) => warnings.push(message),
    runtime,
    sourceOf: () => redis,
  });
  await during(opened.open(), 100);
  redis.received.length = 0;
  return opened;
};

beforeEach(async () => {
  runtime = new VirtualRuntime();
  redis = new FakeRedis(runtime);
  warnings = [];
  store = await openStore();
});

afterEach(async () => {
  await during(store.close(), 2_000);
  expect(runtime.timers).toBe(0);
});

/** What comes of it when so much time has passed. */
async function during<T>(outcome: Promise<T>, ms: number): Promise<T> {
  await runtime.advance(ms);
  const late = Promise.resolve('nothing yet');
  return (await Promise.race([outcome, late])) as T;
}

const failure = (kind: string, message: string) => ({
  status: 'unavailable',
  nodes: [{ node: 'fake:6379', kind, message: expect.stringContaining(message) }],
});

describe('a Redis store over another client than ioredis, in virtual time', () => {
  it('grants, renews and releases', async () => {
    redis.delayMs = 300;
    const lease = request('key');
    expect(await during(store.acquire(lease), 299)).toBe('nothing yet');
    expect(await during(store.acquire(lease), 300)).toMatchObject({ status: 'granted' });
    expect(await during(store.extend([lease]), 300)).toEqual([{ status: 'extended' }]);
    expect(await during(store.release(lease), 300)).toEqual({ status: 'released' });
    expect(warnings).toEqual([]);
  });

  it('waits for an answer for as long as it may, and no longer', async () => {
    const known = redis.answer;
    redis.answerTo(take.sha, () => LOST);
    const asking = store.acquire(request('key'));
    expect(await during(asking, NODE_TIMEOUT_MS - 10)).toBe('nothing yet');
    expect(await during(asking, 50)).toMatchObject(
      failure('timeout', `no answer within ${String(NODE_TIMEOUT_MS)} ms`),
    );
    redis.answer = known;
    redis.delayMs = 20;
    const { nodes, hasQuorum } = await during(store.health(), 100);
    expect(nodes).toEqual([
      expect.objectContaining({ reachable: true, latencyMs: 20, problem: undefined }),
    ]);
    expect(hasQuorum).toBe(true);
  });

  it('tells each of several requests in one call that its connection broke', async () => {
    redis.delayMs = 300;
    const asking = ['alone', 'first', 'second'].map((key) => store.acquire(request(key)));
    await runtime.advance(10);
    expect(redis.received.map(([, script]) => script)).toEqual([take.sha, take.sha]);
    expect(redis.received.map(([, , keyCount]) => keyCount)).toEqual([4, 8]);
    redis.cut();
    const broken = failure('connection', 'the connection closed');
    expect(await during(Promise.all(asking), 0)).toEqual(
      asking.map(() => expect.objectContaining(broken)),
    );
  });

  it('takes what is no list of answers to several requests for none of them', async () => {
    const known = redis.answerOf.bind(redis);
    redis.answerOf = (name, args) =>
      args[0] === take.sha && args[1] === 8 ? 'QUEUED' : known(name, args);
    redis.answerTo(acquireScript.sha, () => 'QUEUED');
    const asking = ['alone', 'first', 'second'].map((key) => store.acquire(request(key)));
    const malformed = failure('error', "unexpected answer 'QUEUED'");
    expect(await during(Promise.all(asking), 10)).toMatchObject([
      { status: 'granted' },
      malformed,
      malformed,
    ]);
    // Each was asked again, alone.
    expect(redis.countOf(acquireScript)).toBeGreaterThanOrEqual(2);
  });

  it('does not take a blocked event loop for silence: what has arrived is read first', async () => {
    redis.delayMs = 10;
    const asking = store.acquire(request('key'));
    runtime.block(10 * NODE_TIMEOUT_MS);
    expect(await during(asking, 10)).toMatchObject({ status: 'granted' });
  });

  it('takes a new connection when one has owed an answer for 5 s', async () => {
    redis.answer = () => LOST;
    for (let ms = 0; ms < 5_000; ms += NODE_TIMEOUT_MS + 50) {
      expect(redis.connections).toBe(1);
      await during(store.acquire(request('key')), NODE_TIMEOUT_MS + 50);
    }
    await during(store.acquire(request('key')), NODE_TIMEOUT_MS + RETRY_MS);
    expect(redis.connections).toBe(2);
  });

  it('takes a new connection when the silent one waits for replicas, too', async () => {
    await store.close();
    store = await openStore({ ack: 1, timeoutMs: 50 });
    redis.answer = () => LOST;
    const before = redis.connections;
    for (let ms = 0; ms < 5_000; ms += NODE_TIMEOUT_MS + 50) {
      expect(redis.connections).toBe(before);
      await during(store.acquire(request('key')), NODE_TIMEOUT_MS + 50);
    }
    await during(store.acquire(request('key')), NODE_TIMEOUT_MS + RETRY_MS);
    expect(redis.connections).toBe(before + 1);
  });

  it('takes a new connection when the first one after an outage is silent, too', async () => {
    redis.isUp = false;
    redis.cut();
    const waiting = store.acquire(request('key'));
    expect(await during(waiting, RETRY_MS)).toMatchObject({ status: 'unavailable' });
    redis.isUp = true;
    redis.isSilent = true;
    await runtime.advance(RETRY_MS);
    redis.isSilent = false;
    for (let ms = 0; ms < 5_000; ms += NODE_TIMEOUT_MS + 50) {
      expect(redis.connections).toBe(1);
      await during(store.acquire(request('key')), NODE_TIMEOUT_MS + 50);
    }
    await during(store.acquire(request('key')), NODE_TIMEOUT_MS + RETRY_MS);
    expect(redis.connections).toBe(2);
  });

  it('sends nothing twice: what was on its way when the connection broke is unavailable', async () => {
    redis.answerTo(take.sha, () => LOST);
    const asking = store.acquire(request('key'));
    await runtime.advance(10);
    redis.cut();
    expect(await during(asking, 0)).toMatchObject(failure('connection', 'closed'));
    await runtime.advance(RETRY_MS + 10);
    expect(redis.connections).toBe(2);
    expect(redis.countOf(take)).toBe(1);
    expect(redis.countOf(acquireScript)).toBeLessThanOrEqual(1); // a look at the server
    expect(redis.received.filter(([, , , key]) => key === 'lock:key')).toHaveLength(1);
  });

  it('while it is down fails an acquire after the next try, and has a release wait', async () => {
    redis.isUp = false;
    redis.cut();
    const [acquiring, releasing] = [store.acquire(request('key')), store.release(request('other'))];
    expect(await during(acquiring, RETRY_MS)).toMatchObject({
      ...failure('connection', 'connect ECONNREFUSED'),
      sent: false,
    });
    expect(await during(releasing, RETRY_MS)).toBe('nothing yet');
    redis.isUp = true;
    expect(await during(releasing, RETRY_MS)).toEqual({ status: 'released' });
    await runtime.advance(1_000);
    expect(warnings).toEqual([
      'The connection to Redis at fake:6379 was lost. Locks are refused (503) until it is reachable.',
      'Redis at fake:6379 is usable again. Locks are granted again.',
    ]);
  });

  it('sends a whole script where the server does not know it, unless nobody waits any more', async () => {
    redis.answerTo('evalsha', () => undefined);
    const known = redis.answer;
    redis.answer = (name, args) =>
      name === 'evalsha'
        ? new Error('NOSCRIPT No matching script')
        : known('evalsha', [releaseScript.sha, ...args.slice(1)]);
    redis.answerTo(releaseScript.lua, () => 1);
    expect(await during(store.release(request('key')), 10)).toEqual({ status: 'released' });
    expect(redis.received.map(([name]) => name)).toEqual(['evalsha', 'eval']);

    redis.delayMs = 2 * NODE_TIMEOUT_MS;
    redis.received.length = 0;
    const late = store.release(request('key'));
    expect(await during(late, 3 * NODE_TIMEOUT_MS)).toMatchObject(failure('timeout', 'no answer'));
    const ofKey = redis.received.filter((sent) => sent.includes('lock:key')); // the server is looked at, too
    expect(ofKey.map(([name]) => name)).toEqual(['evalsha']);
    redis.delayMs = 0;
  });

  it('fails at once where the client throws for the whole script', async () => {
    redis.answer = (name) => {
      if (name === 'eval') throw new RangeError('Maximum call stack size exceeded');
      return new Error('NOSCRIPT No matching script');
    };
    expect(await during(store.release(request('key')), 10)).toMatchObject(
      failure('connection', 'Maximum call stack size exceeded'),
    );
  });

  it.each<unknown>(['QUEUED', [], [1], [7, 1, 1], [0, 1, 9, 100, 'holder', ''], null, {}])(
    'refuses what no script answers: %j',
    async (reply) => {
      const lease = request('key');
      for (const { sha } of [acquireScript, take, extendScript, releaseScript, give])
        redis.answerTo(sha, () => reply);
      const unexpected = { ...failure('error', 'unexpected answer'), transient: false };
      expect(await during(store.acquire(lease), 10)).toMatchObject(unexpected);
      for (const isPlain of [false, true])
        expect(await during(store.release({ ...lease, isPlain }), 10)).toMatchObject(unexpected);
      if (!Array.isArray(reply) || typeof reply[0] !== 'number')
        expect(await during(store.extend([lease]), 10)).toMatchObject([unexpected]);
    },
  );

  it('hears calls, says that it is deaf when its connection breaks, and hears again', async () => {
    const calls: [string | undefined, LineCall | undefined][] = [];
    let deaf = 0;
    const listening = store.listen(
      (key, call) => calls.push([key, call]),
      () => (deaf += 1),
    );
    expect(await during(listening, 100)).toBe('listening');
    const channel = (): string => [...redis.subscribers][0]?.channels[0] ?? '';
    redis.publish(channel(), 'me 5 lock:key');
    expect(calls).toEqual([['key', { to: 'me', inMs: 5 }]]);
    // A place in line names the channel.
    redis.answerTo(take.sha, () => 0);
    redis.answerTo(acquireScript.sha, () => [0, 1, 1, 30_000, 'holdfast:other', '17']);
    const asking = store.acquire(request('key', { line: LINE }));
    expect(await during(asking, 10)).toMatchObject({ status: 'held', ticket: 17 });
    expect(redis.received.at(-1)?.join(' ')).toContain(channel());

    for (const subscriber of [...redis.subscribers]) subscriber.cut();
    expect(deaf).toBe(1);
    await runtime.advance(100);
    expect(redis.subscribers.size).toBe(1);
    expect(calls.at(-1)).toEqual([undefined, undefined]);
  });

  it('leaves a line again and again until the server answers, for longer than the lease would last', async () => {
    await during(
      store.listen(() => undefined),
      100,
    );
    // It outlives the lease that it was for.
    const lease = request('key', { line: LINE, ttlMs: 500 });
    const known = redis.answer;
    const whatLeft = (): readonly string[] =>
      redis.received
        .filter(([, script, , key]) => script === releaseScript.sha && key === 'lock:key')
        .map(String);
    redis.answerTo(releaseScript.sha, () => LOST);
    await during(store.leave(lease, LINE), 20_000);
    redis.answer = known;
    const [first, ...before] = whatLeft();
    await runtime.advance(6_000);
    const again = whatLeft().slice(1 + before.length);
    expect(again).toHaveLength(1);
    // It names its place, which it left with the first.
    expect(again[0]).toBe(first);
  });
});
