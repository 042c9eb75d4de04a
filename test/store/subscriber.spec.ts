import { describe, expect, it } from '@jest/globals';
import type { SubscriberEvents } from '../../lib/store/redis/client/redis-client.js';
import { Subscriber } from '../../lib/store/redis/client/subscriber.js';
import { leavesReplicas } from '../../lib/store/redis/client/leaves-replicas.js';
import { Scheduler } from '../../lib/time/scheduler.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

describe('a connection that only listens', () => {
  it('ends with an error, unless it has yet to connect, which the promise tells', async () => {
    let ends = 0;
    let events: SubscriberEvents | undefined;
    const client = {
      ...{ isReady: true, connect: async () => undefined, subscribe: async () => undefined },
      ping: async () => undefined,
      disconnect: () => {
        ends += 1;
        events?.onEnd();
      },
    };
    let gone = 0;
    const subscriber = new Subscriber(
      (given) => {
        events = given;
        return client;
      },
      {
        ...{ scheduler: new Scheduler(new VirtualRuntime()), timeLimitMs: 1_000 },
        onMessage: () => undefined,
        onGone: () => (gone += 1),
      },
    );
    events?.onError();
    expect([ends, gone]).toEqual([0, 0]);
    await subscriber.connect();
    events?.onError();
    expect([ends, gone]).toEqual([1, 1]);
  });
});

describe('a master that was made a replica', () => {
  it('is left at once, and after that once a second', () => {
    const runtime = new VirtualRuntime();
    const leaves = leavesReplicas(runtime);
    const refusal = new Error("READONLY You can't write against a read only replica.");
    expect(leaves(new Error('ERR'))).toBe(false);
    expect([leaves(refusal), leaves(refusal)]).toEqual([true, false]);
    runtime.block(999);
    expect(leaves(refusal)).toBe(false);
    runtime.block(1);
    expect([leaves(refusal), leaves(refusal)]).toEqual([true, false]);
  });
});
