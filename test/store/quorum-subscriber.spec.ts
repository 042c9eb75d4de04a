import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockService } from 'nestjs-holdfast';
import type { LineCall, ReleaseListener } from '../../lib/store/lock-store.js';
import { QuorumSubscriber } from '../../lib/store/redis/quorum/quorum-subscriber.js';
import type { Voter } from '../../lib/store/redis/quorum/voter.js';
import { systemRuntime, type Runtime } from '../../lib/time/runtime.js';
import { deferred, eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';

/** Much less than the TTL that a waiter would otherwise sleep for. */
const SOON_MS = 5_000;

/** A node whose messages the test sends. */
class FakeNode {
  readonly opened = deferred<boolean>();
  isSilent = false;
  tell: ReleaseListener = () => undefined;
  deafen: () => void = () => undefined;

  async listen(onRelease: ReleaseListener, onDeaf: () => void): Promise<'listening' | 'polling'> {
    this.tell = onRelease;
    this.deafen = onDeaf;
    return (await this.opened.promise) ? 'listening' : 'polling';
  }
}

function earsOf(count: number, runtime: Runtime = systemRuntime) {
  const nodes = Array.from({ length: count }, () => new FakeNode());
  const ears = new QuorumSubscriber(nodes as unknown as readonly Voter[], runtime);
  const heard: (string | undefined)[] = [];
  const calls: (LineCall | undefined)[] = [];
  let deaf = 0;
  let answer: string | undefined;
  const opening = ears.open(
    (key, call) => {
      heard.push(key);
      calls.push(call);
    },
    () => (deaf += 1),
  );
  void opening.then((result) => (answer = result));
  return { ears, nodes, heard, calls, opening, deaf: () => deaf, answer: () => answer };
}

async function listening(count: number, runtime?: Runtime) {
  const all = earsOf(count, runtime);
  for (const node of all.nodes) node.opened.resolve(true);
  expect(await all.opening).toBe('listening');
  await settled();
  return all;
}

describe('the ears of several nodes', () => {
  it('listen once a majority can be heard, and do not wait for the others', async () => {
    const { nodes, answer, opening } = earsOf(3);
    nodes[0]?.opened.resolve(true);
    await settled();
    expect(answer()).toBeUndefined();
    nodes[2]?.opened.resolve(true);
    expect(await opening).toBe('listening');
  });

  it('let those who wait look by themselves where a majority cannot be heard', async () => {
    const { nodes, opening } = earsOf(3);
    nodes[0]?.opened.resolve(true);
    nodes[1]?.opened.resolve(false);
    nodes[2]?.opened.resolve(false);
    expect(await opening).toBe('polling');
  });

  it('do not wait for a node that is silent', async () => {
    const nodes = [new FakeNode(), new FakeNode(), new FakeNode()];
    nodes[0]!.isSilent = true;
    nodes[1]!.opened.resolve(true);
    nodes[2]!.opened.resolve(false);
    const ears = new QuorumSubscriber(nodes as unknown as readonly Voter[], systemRuntime);
    expect(await ears.open(() => undefined)).toBe('polling');
  });

  it('listen again, and say that releases may have been missed, when a majority can be heard later', async () => {
    const { nodes, heard, opening } = earsOf(3);
    nodes[0]?.opened.resolve(true);
    nodes[1]?.opened.resolve(false);
    nodes[2]?.opened.resolve(false);
    await opening;
    nodes[2]?.tell(undefined);
    expect(heard).toStrictEqual([undefined]);
  });

  it('are deaf when no majority can be heard any more: this is said once, and that they hear again', async () => {
    const { nodes, heard, deaf } = await listening(3);
    nodes[0]?.deafen();
    expect(deaf()).toBe(0);
    nodes[1]?.deafen();
    expect(deaf()).toBe(1);
    nodes[2]?.deafen();
    nodes[1]?.deafen();
    expect(deaf()).toBe(1);
    nodes[0]?.tell(undefined);
    expect(heard).toEqual([]);
    nodes[1]?.tell(undefined);
    expect(heard).toStrictEqual([undefined]);
  });

  it('say so too when a node that was missed comes back: what it told meanwhile was not heard', async () => {
    const { nodes, heard } = await listening(3);
    nodes[0]?.deafen();
    nodes[0]?.tell(undefined);
    expect(heard).toStrictEqual([undefined]);
  });

  describe('pass on', () => {
    beforeEach(() => {
      jest.useFakeTimers({ doNotFake: ['setImmediate', 'queueMicrotask', 'nextTick'] });
    });

    afterEach(() => {
      jest.useRealTimers();
    });

    it('a release once, though every node tells of it, and a little later: it is to reach the others first', async () => {
      const { nodes, heard } = await listening(3);
      for (const node of nodes) node.tell('key');
      expect(heard).toEqual([]);
      nodes[1]?.tell('other');
      jest.advanceTimersByTime(10);
      expect(heard.toSorted()).toEqual(['key', 'other']);
      nodes[0]?.tell('key');
      jest.advanceTimersByTime(10);
      expect(heard).toHaveLength(3);
    });

    it('each of the calls to those in line for one key, once', async () => {
      const { nodes, calls } = await listening(3);
      const [first, second] = ['first', 'second'].map((to) => ({ to, inMs: 0 }));
      for (const node of nodes) {
        node.tell('key', first);
        node.tell('key', second);
        node.tell('key');
      }
      jest.advanceTimersByTime(10);
      expect(calls).toHaveLength(3);
      expect(calls).toEqual(expect.arrayContaining([first, second, undefined]));
    });

    it.each([
      [0, 1],
      [0.5, 3.5],
      [0.99, 5.95],
    ])('a release at a random time of the next 6 ms: %d gives %d ms', async (random, ms) => {
      const runtime = Object.assign(new VirtualRuntime(), { random: () => random });
      const { nodes, heard } = await listening(3, runtime);
      nodes[0]?.tell('key');
      await runtime.advance(ms - 0.01);
      expect(heard).toEqual([]);
      await runtime.advance(0.02);
      expect(heard).toEqual(['key']);
    });

    it('nothing any more after they were closed, and leave no timer', async () => {
      const { ears, nodes, heard } = await listening(3);
      nodes[0]?.tell('key');
      expect(jest.getTimerCount()).toBe(1);
      ears.close();
      expect(jest.getTimerCount()).toBe(0);
      jest.advanceTimersByTime(10);
      expect(heard).toEqual([]);
    });
  });
});

describe('those who wait at three masters', () => {
  let servers: RedisServer[] = [];
  let services: LockService[] = [];

  beforeEach(async () => {
    Logger.overrideLogger(false);
    servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
  });

  afterEach(async () => {
    await Promise.all(services.map((service) => service.shutdown(0)));
    await Promise.all(servers.map((server) => server.stop()));
    services = [];
  });

  function service(): LockService {
    const locks = new LockService({
      redis: servers.map(({ url }) => url),
      ttl: '60s',
      nodeTimeout: 500,
    });
    services.push(locks);
    return locks;
  }

  const isInLine = async (server: RedisServer): Promise<boolean> =>
    (await server.command('ZCARD', '{lock:key}:queue')) === 1;

  it.each(['was gone before', 'goes while they wait'])(
    'are woken by a release although one node %s',
    async (when) => {
      const [lost, ...others] = servers as [RedisServer, RedisServer, RedisServer];
      const [holder, waiter] = [service(), service()];
      const lock = await holder.acquire('key', { autoExtend: false });
      if (when === 'was gone before') await lost.kill();
      const waiting = waiter.acquire('key', { wait: '50s' });
      for (const server of others) await eventually(() => isInLine(server));
      if (when !== 'was gone before') await lost.kill();
      const since = performance.now();
      await lock.release();
      await (await waiting).release();
      expect(performance.now() - since).toBeLessThan(SOON_MS);
    },
  );

  it('look by themselves while a majority cannot be heard', async () => {
    for (const server of servers) {
      await server.command('ACL', 'SETUSER', 'default', '-subscribe');
    }
    const [holder, waiter] = [service(), service()];
    const lock = await holder.acquire('key', { autoExtend: false });
    const waiting = waiter.acquire('key', { wait: '50s' });
    for (const server of servers) {
      await eventually(async () =>
        String(await server.command('ACL', 'LOG')).includes('subscribe'),
      );
    }
    const since = performance.now();
    await lock.release();
    await (await waiting).release();
    expect(performance.now() - since).toBeLessThan(SOON_MS);
  });
});
