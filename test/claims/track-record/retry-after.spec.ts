import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, Param, Post } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { WithLock, type LockModuleOptions } from 'nestjs-holdfast';
import { Gate } from '../../nest/gate.js';
import { ADAPTERS, closeHttpApps, CONFLICT, startHttpApp } from '../../nest/http-app.js';
import { RedisServer } from '../../support/redis-server.js';

describe.each(ADAPTERS)('Retry-After of a held lock (%s)', (adapter) => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterEach(closeHttpApps);
  afterAll(() => redis.stop());

  async function start(options: LockModuleOptions = {}, minHold: '0s' | '5s' = '0s') {
    const gates = new Map<string, Gate>();

    @Controller()
    class Orders {
      @Post(':id')
      @WithLock('order:<id>', { ttl: '30s', minHold })
      async pay(@Param('id') id: string): Promise<void> {
        await (gates.get(id)?.pass() ?? sleep(200));
      }
    }

    const { post } = await startHttpApp(
      { controllers: [Orders] },
      { adapter, options: { redis: redis.url, ...options } },
    );
    /** The hint of a request while another one of the same order runs. */
    const refusal = async (id: string): Promise<number> => {
      const gate = new Gate();
      gates.set(id, gate);
      const first = post(`/${id}`);
      await gate.reached;
      const { status, body, retryAfter } = await post(`/${id}`);
      gate.open();
      expect((await first).status).toBe(201);
      expect([status, body]).toEqual([409, CONFLICT]);
      return Number(retryAfter);
    };
    return { post, refusal };
  }

  it('is what sections of the template took lately', async () => {
    const { post, refusal } = await start();
    const since = performance.now();
    for (const id of ['1', '2', '3']) expect((await post(`/${id}`)).status).toBe(201);
    // 1, unless the machine is so slow that a section of 200 ms took longer than a second.
    const longest = Math.ceil((performance.now() - since) / 1_000);
    const hint = await refusal('4');
    expect(hint).toBeGreaterThanOrEqual(1);
    expect(hint).toBeLessThanOrEqual(longest);
  });

  it('is what is left of the lease before any section of the template has ended', async () => {
    const { refusal } = await start();
    expect(await refusal('5')).toBeGreaterThan(20);
  });

  it('is what is left of the lease with retryAfter "lease"', async () => {
    const { post, refusal } = await start({ errors: { retryAfter: 'lease' } });
    expect((await post('/6')).status).toBe(201);
    expect(await refusal('7')).toBeGreaterThan(20);
  });

  it('counts the time for which "minHold" keeps the key taken', async () => {
    const { post, refusal } = await start({}, '5s');
    expect((await post('/8')).status).toBe(201);
    const hint = await refusal('9');
    expect(hint).toBeGreaterThanOrEqual(4);
    expect(hint).toBeLessThanOrEqual(20);
  });
});
