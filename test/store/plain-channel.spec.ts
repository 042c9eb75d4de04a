import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockStore } from '../../lib/store/lock-store.js';
import { redisLockStore } from '../../lib/store/redis/redis-lock-store.js';
import { FakeRedis, RETRY_MS } from '../support/fake-redis.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { replyError } from '../../lib/store/redis/client/reply-errors.js';

/** Longer than it takes to try again. */
const SOON_MS = 3_000;

let runtime: VirtualRuntime;
let redis: FakeRedis;
let store: LockStore;
let warnings: string[];
let calls: (string | undefined)[];
let deaf: number;

beforeEach(async () => {
  runtime = new VirtualRuntime();
  redis = new FakeRedis(runtime);
  [warnings, calls, deaf] = [[], [], 0];
  store = redisLockStore({
    ...{ redis: ['redis://fake'], keyPrefix: 'lock:', clockDrift: 0.01 },
    ...{ nodeTimeoutMs: 1_000, fenceKeepMs: 600_000 },
    ...{ warn: (message) => warnings.push(message), runtime, sourceOf: () => redis },
  });
  const opening = store.open();
  await runtime.advance(100);
  await opening;
});

afterEach(async () => {
  const closing = store.close();
  await runtime.advance(2_000);
  await closing;
  expect(runtime.timers).toBe(0);
});

async function listen(): Promise<'listening' | 'polling'> {
  const opening = store.listen(
    (key) => calls.push(key),
    () => (deaf += 1),
  );
  await runtime.advance(500);
  return opening;
}

const channel = (): string => [...redis.subscribers][0]?.channels[0] ?? '';

/** What the server says of the number of listeners; an error is its answer, too. */
function countsListeners(answer: unknown): void {
  redis.answerTo('pubsub', () => answer);
}

describe('the channel on which a process is called', () => {
  it('is one that the server counts a listener of', async () => {
    expect(await listen()).toBe('listening');
    expect(channel()).toMatch(/^holdfast:/);
    expect(redis.received).toContainEqual(['pubsub', 'NUMSUB', channel()]);
    expect(warnings).toEqual([]);
  });

  it.each([
    ['must not be asked', replyError('NOPERM no permissions to run pubsub')],
    ['does not know', []],
    ['answers with something else', 'QUEUED'],
    ['names no number', ['channel']],
  ])('is used also where the server %s', async (_how, answer) => {
    countsListeners(answer);
    expect(await listen()).toBe('listening');
  });

  it('is none where commands go to a server that has no listener: that takes us for dead', async () => {
    countsListeners(['channel', 0]);
    expect(await listen()).toBe('polling');
    expect(redis.subscribers.size).toBe(0);
    // Not at once: it is so for a moment after each fail-over.
    for (let tries = 0; tries < 10; tries += 1) await runtime.advance(RETRY_MS + SOON_MS);
    expect(warnings.join()).toContain('it is another server than commands go to');
    countsListeners(['channel', 1]);
    await runtime.advance(SOON_MS);
    expect(redis.subscribers.size).toBe(1);
    expect(calls).toStrictEqual([undefined]); // everybody looks again
  });

  it('is opened anew when the server to which commands go has no listener any more', async () => {
    await listen();
    const before = channel();
    countsListeners(['channel', 0]);
    redis.cut();
    await runtime.advance(RETRY_MS + SOON_MS);
    expect(deaf).toBe(1);
    countsListeners(['channel', 1]);
    await runtime.advance(SOON_MS);
    expect(channel()).toBe(before);
    expect(calls).toStrictEqual([undefined]);
  });

  it('hears nothing of a message that is only a trial', async () => {
    await listen();
    redis.publish(channel(), '');
    expect(calls).toEqual([]);
    redis.publish(channel(), 'me 5 lock:key');
    expect(calls).toEqual(['key']);
  });

  it('is not used when it was lost while it was being opened', async () => {
    redis.answerTo('publish', () => {
      for (const subscriber of [...redis.subscribers]) subscriber.cut();
      return 1;
    });
    expect(await listen()).toBe('polling');
    expect(deaf).toBe(0);
    redis.answerTo('publish', () => 1);
    await runtime.advance(SOON_MS);
    expect(calls).toStrictEqual([undefined]);
  });
});
