import { describe, expect, it } from '@jest/globals';
import type { LockService } from 'nestjs-holdfast';
import { eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { share } from '../../support/soak.js';
import {
  LIMIT_MS,
  MINUTE_MS,
  at,
  masters,
  three,
  open,
  proxied,
  expectNothingLeftOn,
  standsInLine,
  growing,
  useFiveMasters,
} from './quorum-stage.js';

useFiveMasters();

describe('a quorum: fencing tokens', () => {
  it('tokens grow, whichever two of three nodes are reachable, and however different their last tokens are', async () => {
    const gates = await Promise.all(three().map(proxied));
    const locks = await open(gates, { nodeTimeout: 1_000, wait: '20s' });
    const farApartUs = 1_000_000_000;
    const nowUs = Date.now() * 1_000;
    for (const [index, server] of three().entries()) {
      const fence = String(nowUs + index * index * farApartUs);
      await server.command('SET', '{lock:key}:fence', fence, 'PX', 10 * MINUTE_MS);
    }
    const tokens: number[] = [];
    for (let turn = 0; turn < 9; turn += 1) {
      const away = turn % gates.length;
      const gate = at(gates, away);
      gate.refuse();
      gate.cut();
      await eventually(async () => {
        const { nodes } = await locks.health();
        expect(nodes.map(({ reachable }) => reachable)).toEqual(gates.map((_, i) => i !== away));
      });
      for (let grant = 0; grant < 3; grant += 1) {
        tokens.push(await locks.run('key', ({ fencingToken }) => fencingToken));
      }
      gate.accept();
      // A fence is lost now and then, too: of the one that comes back.
      if (turn >= 6) await at(three(), away).command('DEL', '{lock:key}:fence');
    }
    expect(tokens).toHaveLength(27);
    expect(tokens).toEqual(growing(tokens));
  });

  it('grow for many who ask in turns, of whom each reaches two other nodes', async () => {
    const [first, second, third] = three();
    const gone = await RedisServer.start();
    await gone.stop();
    const reach = [
      [first, second, gone],
      [gone, second, third],
      [first, gone, third],
    ];
    const clients = await Promise.all(reach.map((nodes) => open(nodes)));
    for (const [index, server] of three().entries()) {
      const fence = String(Date.now() * 1_000 + (3 - index) * 500_000_000);
      await server.command('SET', '{lock:key}:fence', fence, 'PX', 10 * MINUTE_MS);
    }
    const tokens: number[] = [];
    for (let grant = 0; grant < 60; grant += 1) {
      const client = at(clients, (grant * 7) % 3);
      tokens.push(await client.run('key', { wait: '20s' }, (lock) => lock.fencingToken));
    }
    expect(tokens).toEqual(growing(tokens));
  });
});

describe('a quorum: waiting', () => {
  it.each([3, 5])(
    'ends with the release, on %i nodes',
    async (count) => {
      const nodes = masters(count);
      const [holder, waiter] = [await open(nodes), await open(nodes)];
      for (let round = 0; round < 5; round += 1) {
        const lock = await holder.acquire('key', { autoExtend: false });
        const waiting = waiter.acquire('key', { wait: MINUTE_MS });
        await standsInLine(nodes, 'key');
        expect(await lock.release()).toBe(true);
        expect(await (await waiting).release()).toBe(true);
      }
    },
    LIMIT_MS,
  );

  it.each([0, 1, 2])(
    'ends with the release while node number %i is dead: from the start, or since they wait',
    async (number) => {
      const dead = at(three(), number);
      const alive = three().filter((server) => server !== dead);
      for (const when of ['while they wait', 'before']) {
        const [holder, waiter] = [await open(three()), await open(three())];
        const lock = await holder.acquire('key', { autoExtend: false });
        const waiting = waiter.acquire('key', { wait: MINUTE_MS });
        await standsInLine(dead.isRunning ? three() : alive, 'key');
        if (when === 'while they wait') await dead.kill();
        expect(await lock.release()).toBe(true);
        expect(await (await waiting).release()).toBe(true);
      }
    },
    LIMIT_MS,
  );

  it('ends with the release by a holder that reaches other nodes than those who wait', async () => {
    const [first, second, third] = three();
    const gone = await RedisServer.start();
    await gone.stop();
    const holder = await open([first, second, gone]);
    const waiter = await open([gone, second, third]);
    const lock = await holder.acquire('key', { autoExtend: false });
    const waiting = waiter.acquire('key', { wait: MINUTE_MS });
    await standsInLine([second], 'key');
    expect(await lock.release()).toBe(true);
    expect((await waiting).isHeld).toBe(true);
  }, 25_000);

  /**
   * Services each of which is nearer to one of the nodes than the others are: when they ask at once, each has a vote of its own, and
   * none a majority.
   */
  async function withNodesOfTheirOwn(count: number): Promise<LockService[]> {
    const far = await Promise.all(three().map(proxied));
    for (const proxy of far) proxy.delay(5, 'to-server');
    return Promise.all(
      Array.from({ length: count }, (_, number) =>
        open(far.map((proxy, index) => (index === number % 3 ? at(three(), index) : proxy))),
      ),
    );
  }

  const ROUNDS = share(5, 20);

  it.each(['in the same order', 'each another node first'])(
    'lets ten who ask at once have the lock, one after the other, again and again: %s',
    async (order) => {
      const contenders =
        order === 'in the same order'
          ? await Promise.all(Array.from({ length: 10 }, () => open(three())))
          : await withNodesOfTheirOwn(10);
      let [inside, most, done] = [0, 0, 0];
      for (let round = 0; round < ROUNDS; round += 1) {
        await Promise.all(
          contenders.map((locks) =>
            locks.run('key', { wait: '20s' }, async () => {
              most = Math.max(most, (inside += 1));
              await new Promise((resolve) => setImmediate(resolve));
              inside -= 1;
              done += 1;
            }),
          ),
        );
      }
      expect(done).toBe(10 * ROUNDS);
      expect(most).toBe(1);
      await expectNothingLeftOn(three());
    },
    2 * MINUTE_MS,
  );

  const TRIES = share(20, 50);

  it.each([2, 3])(
    'gives the lock to at most one of %i who try at once, and leaves nothing of the others',
    async (count) => {
      const all = await withNodesOfTheirOwn(count);
      let granted = 0;
      for (let round = 0; round < TRIES; round += 1) {
        // They are told "yours" or "not yours", and nothing else: no node is down.
        const locks = await Promise.all(all.map((service) => service.tryAcquire('key')));
        const winners = locks.filter((lock) => lock !== null);
        expect(winners.length).toBeLessThanOrEqual(1);
        granted += winners.length;
        for (const lock of winners) expect(await lock.release()).toBe(true);
      }
      // All may go away empty-handed when their votes were split again and again; but that is not the rule.
      expect(granted).toBeGreaterThan(TRIES / 2);
      await expectNothingLeftOn(three());
      expect(await at(all, 0).tryRun('key', () => 'ran')).toMatchObject({ acquired: true });
    },
  );
});
