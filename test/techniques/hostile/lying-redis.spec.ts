import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { LockEngine } from '../../../lib/engine/lock-engine.js';
import { LockConfigurationError, LockError } from '../../../lib/errors.js';
import { redisLockStore } from '../../../lib/store/redis/redis-lock-store.js';
import { cases } from '../../support/cases.js';
import { FakeRedis, LOST } from '../../support/fake-redis.js';
import { VirtualRuntime } from '../../support/virtual-runtime.js';
import { hostileReply, hostileText } from './hostile-values.js';
import { storeOption } from '../../../lib/options/location.js';

/** How long a caller of a world waits for its lock, in ms. */
const WAIT_MS = 1_000;

/** After the last lie: a connection that is silent is replaced after 5 s, and a server that refused is looked at every 5 s. */
const RECOVERS_WITHIN_MS = 20_000;

/** Lies of one world. */
const LIES = 100;

interface Story {
  readonly servers: number;
  /** What is said in place of the answer, one after the other; an honest answer where there is none. */
  readonly lies: readonly unknown[];
  /** What strangers publish where the process is called. */
  readonly messages: readonly string[];
}

const uuid = '00000000-0000-4000-8000-00000000000';

const message = fc.oneof(
  hostileText,
  fc
    .tuple(fc.nat(9), fc.oneof(fc.nat(), hostileText), hostileText)
    .map(([digit, inMs, name]) => `holdfast:${uuid}${digit} ${String(inMs)} lock:${name}`),
  fc.constantFrom(`${uuid}1 0 lock:a`, `${uuid}2 99999999999999999999 lock:a`),
);

const HONEST = Symbol('honest');

const stories: fc.Arbitrary<Story> = fc.record({
  servers: fc.constantFrom(1, 1, 3),
  lies: fc.array(
    fc.oneof(
      hostileReply,
      fc.constantFrom(LOST, new Error('ERR no'), new Error('NOSCRIPT'), new Error('MOVED 1 a:1')),
      fc.constant(HONEST),
    ),
    { minLength: LIES / 2, maxLength: LIES },
  ),
  messages: fc.array(message, { maxLength: 20 }),
});

let unhandled: unknown[];
const onUnhandled = (error: unknown): void => {
  unhandled.push(error);
};

beforeEach(() => {
  unhandled = [];
  process.on('unhandledRejection', onUnhandled);
});

afterEach(() => {
  process.off('unhandledRejection', onUnhandled);
});

const WORK_MS = 300;

const isOurs = (error: unknown): boolean =>
  error instanceof LockError || error instanceof LockConfigurationError;

/** Callers of all kinds, on keys that some of them share. */
function callers(engine: LockEngine, { servers }: Story): readonly Promise<unknown>[] {
  const { runtime } = engine;
  const work = (): Promise<void> =>
    new Promise((done) => void runtime.setTimer(() => done(), WORK_MS));
  const options = { ttl: 1_000, wait: WAIT_MS };
  return [
    engine.run('a', options, work),
    engine.run('a', { ...options, mode: 'shared' }, work),
    engine.run(['a', 'b'], options, work),
    engine.tryRun('b', { ttl: 1_000 }, work),
    engine.acquire('c', options).then((lock) => lock.extend().then(() => lock.release())),
    servers === 1 ? engine.run('d', { ...options, limit: 2 }, work) : engine.inspect('d'),
    servers === 1 ? engine.runOnce('e', { ...options, attempts: 2 }, work) : engine.inspect('e'),
    engine.inspect('a'),
    engine.forceRelease('b'),
    engine.health(),
  ];
}

/** Every server tells the lies of a story, then the truth. */
function liars({ servers, lies }: Story, runtime: VirtualRuntime) {
  const left = [...lies];
  const redises = Array.from({ length: servers }, (_, index) => {
    const redis = new FakeRedis(runtime, `fake:${String(index)}`);
    const honest = redis.answer;
    redis.delayMs = 1;
    redis.answer = (name, args) => {
      const answer = left.length > 0 ? left.shift() : HONEST;
      return answer === HONEST ? honest(name, args) : answer;
    };
    return redis;
  });
  const stop = (): void => {
    left.length = 0;
  };
  return { redises, stop };
}

function shout(redises: readonly FakeRedis[], text: string): void {
  for (const redis of redises)
    for (const { channels } of redis.subscribers)
      for (const channel of channels) redis.publish(channel, text);
}

/** What came of it in so much time. */
async function within<T>(ms: number, outcome: Promise<T>, runtime: VirtualRuntime): Promise<T> {
  await runtime.advance(ms);
  const late = Symbol();
  const first = await Promise.race([outcome, Promise.resolve(late)]);
  if (first === late) throw new Error(`nothing after ${String(ms)} ms`);
  return outcome;
}

/** A process whose servers lie for a while: answers the errors of its callers. */
async function live(story: Story): Promise<readonly unknown[]> {
  const runtime = new VirtualRuntime(story.lies.length);
  const { redises, stop } = liars(story, runtime);
  const log = { warn: () => undefined, error: onUnhandled };
  const store = redisLockStore({
    redis: redises.map(({ name }) => name),
    keyPrefix: 'lock:',
    nodeTimeoutMs: 200,
    fenceKeepMs: 600_000,
    warn: log.warn,
    runtime,
    sourceOf: (location) => redises.find(({ name }) => name === location)!,
  });
  const engine = new LockEngine(
    { store: storeOption(store), nodeTimeout: 200, shutdownTimeout: 100 },
    { runtime, log },
  );
  const errors: unknown[] = [];
  const opening = engine.open().then(
    () => true,
    // An application whose Redis says that it is too old, for instance, does not start.
    (error: unknown) => {
      errors.push(error);
      return false;
    },
  );
  if (await within(5_000, opening, runtime)) {
    const outcomes = Promise.allSettled(callers(engine, story));
    for (const text of story.messages) {
      shout(redises, text);
      await runtime.advance(50);
    }
    // Each waits for its lock, works, and gives it back; a silent server takes a time limit each time.
    for (const outcome of await within(10_000, outcomes, runtime))
      if (outcome.status === 'rejected') errors.push(outcome.reason);
    stop();
    await runtime.advance(RECOVERS_WITHIN_MS);
    expect(
      await within(
        1_000,
        engine.tryRun('a', () => 'locked'),
        runtime,
      ),
    ).toMatchObject({
      value: 'locked',
    });
  }
  stop();
  await within(20_000, engine.shutdown(), runtime);
  expect(runtime.timers).toBe(0);
  return errors;
}

describe('a server that lies, and strangers who call', () => {
  it('end no process, keep nobody waiting and leave nothing behind', async () => {
    await fc.assert(
      fc.asyncProperty(stories, async (story) => {
        const errors = await live(story);
        for (const error of errors) if (!isOurs(error)) throw error;
        expect(unhandled).toEqual([]);
      }),
      { numRuns: Math.ceil(cases(200, 2_000) / LIES) },
    );
  });
});
