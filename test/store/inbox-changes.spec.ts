import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type {
  RedisClient,
  RedisSource,
  SubscriberClient,
} from '../../lib/store/redis/client/redis-client.js';
import { replyError } from '../../lib/store/redis/client/reply-errors.js';
import type { RedisStore } from '../../lib/store/redis/node/redis-store.js';
import { redisLockStore } from '../../lib/store/redis/redis-lock-store.js';
import { FakeRedis } from '../support/fake-redis.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

/** Longer than the pause after a refusal. */
const RETRIED_MS = 6_000;

let runtime: VirtualRuntime;
let redis: FakeRedis;
let store: RedisStore;
let warnings: string[];

/** What becomes of a subscription. */
let onSubscribe: () => void;
let onConnect: () => void;
let ownerOf: () => string | undefined;
let onRefresh: () => void;

beforeEach(() => {
  runtime = new VirtualRuntime();
  redis = new FakeRedis(runtime);
  redis.answerTo('spublish', () => 1);
  warnings = [];
  onSubscribe = onConnect = () => undefined;
  ownerOf = () => 'a:1';
  onRefresh = () => undefined;
});

afterEach(async () => {
  await during(store.close(), 2_000);
});

async function during<T>(outcome: Promise<T>, ms = 100): Promise<T> {
  await runtime.advance(ms);
  return outcome;
}

/** With plain channels at one server, or sharded ones on a Cluster. */
async function listen(kind: 'single' | 'cluster'): Promise<'listening' | 'polling'> {
  const connect = redis.connect.bind(redis);
  redis.connect = (events): RedisClient => {
    const client = connect(events);
    const openSubscriber = client.openSubscriber.bind(client);
    return Object.assign(client, {
      ...{ kind, hasShardedChannels: kind === 'cluster', ownerOf: () => ownerOf() },
      refreshSlots: () => {
        onRefresh();
      },
      openSubscriber: (...args: Parameters<typeof openSubscriber>): SubscriberClient => {
        const subscriber = openSubscriber(...args);
        const [connect, subscribe] = [
          subscriber.connect.bind(subscriber),
          subscriber.subscribe.bind(subscriber),
        ];
        subscriber.connect = async () => {
          onConnect();
          await connect();
        };
        subscriber.subscribe = async (...what) => {
          onSubscribe();
          await subscribe(...what);
        };
        return subscriber;
      },
    });
  };
  const source = Object.assign(redis as RedisSource, { isCluster: kind === 'cluster' });
  store = redisLockStore({
    ...{ redis: ['redis://fake'], keyPrefix: 'lock:', nodeTimeoutMs: 1_000, fenceKeepMs: 600_000 },
    ...{ warn: (message: string) => warnings.push(message), runtime, sourceOf: () => source },
  }) as RedisStore;
  await during(store.open());
  expect(store.problems['no-messages']).toBe(false);
  return during(store.listen(() => undefined));
}

const forbid = (): void => {
  onSubscribe = () => {
    throw replyError('NOPERM this user has no permissions to access the channel');
  };
};

const cut = (): void => {
  for (const subscriber of [...redis.subscribers]) subscriber.cut();
};

const COMPLAINT = expect.stringMatching(/^Cannot be notified of releases by fake:6379 \(NOPERM/);
const END = 'Releases at fake:6379 are heard again: waiting callers are woken at once.';

describe('the inbox of a process', () => {
  it('that is refused is a problem until it is heard, each time', async () => {
    forbid();
    expect(await listen('single')).toBe('polling');
    expect(store.problems['no-messages']).toBe(true);
    onSubscribe = () => undefined;
    await runtime.advance(RETRIED_MS);
    expect(store.problems['no-messages']).toBe(false);
    expect(warnings).toEqual([COMPLAINT, END]);

    cut();
    await runtime.advance(RETRIED_MS);
    expect(warnings).toHaveLength(2);
    forbid();
    cut();
    await runtime.advance(RETRIED_MS);
    expect(warnings.slice(2)).toEqual([COMPLAINT]);
  });

  it('that was heard on a sharded channel keeps it while that is refused', async () => {
    expect(await listen('cluster')).toBe('listening');
    const { address } = store.inbox;
    expect(address).toMatch(/^sharded /);
    forbid();
    cut();
    await runtime.advance(RETRIED_MS);
    expect(store.inbox.address).toBe(address);
    expect(warnings).toEqual([COMPLAINT]);
  });

  it('has an address as long as its connection may come back: until then, a message is repeated', async () => {
    const heard = (): readonly unknown[] => [store.admin.isHearing, store.admin.address()];
    const fails = (): void => {
      throw new Error('connect ECONNREFUSED');
    };
    onConnect = fails;
    await listen('single');
    const [, address] = heard();
    expect(address).toMatch(/^\["plain /);
    onConnect = () => undefined;
    await runtime.advance(RETRIED_MS);
    expect(heard()).toEqual([true, address]);
    onConnect = fails;
    cut();
    await runtime.advance(RETRIED_MS);
    // A newer call that replaces its work waits for one that has an address.
    expect(heard()).toEqual([false, address]);
    onConnect = () => undefined;
    forbid();
    await runtime.advance(RETRIED_MS);
    expect(heard()).toEqual([false, undefined]);
  });

  it('without a known master says which slot is without one', async () => {
    ownerOf = () => undefined;
    expect(await listen('cluster')).toBe('polling');
    expect(warnings).toEqual([]);
    await runtime.advance(RETRIED_MS);
    expect(warnings).toEqual([
      expect.stringMatching(/^Cannot be .* \(no master of slot \d+ is known yet\)\. Waiting/),
    ]);
  });

  it('without a known master asks where its slot is, and is heard then', async () => {
    ownerOf = () => undefined;
    onRefresh = () => {
      ownerOf = () => 'a:1';
    };
    expect(await listen('cluster')).toBe('polling');
    await runtime.advance(RETRIED_MS);
    expect(store.inbox.isSubscribed).toBe(true);
    expect(warnings).toEqual([]);
  });

  it.each(['single', 'cluster'] as const)(
    'that could not connect does so later, to the same server: %s',
    async (kind) => {
      onConnect = () => {
        throw new Error('connect ECONNREFUSED');
      };
      expect(await listen(kind)).toBe('polling');
      onConnect = () => undefined;
      await runtime.advance(RETRIED_MS);
      expect(store.inbox.isSubscribed).toBe(true);
    },
  );

  it('sends no messages to itself while it is heard on a plain channel', async () => {
    await listen('single');
    redis.received.length = 0;
    await runtime.advance(120_000);
    expect(redis.received.filter(([name]) => name === 'publish')).toEqual([]);
  });
});
