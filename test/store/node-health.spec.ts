import { describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-holdfast';
import type { NodeHealth, Unavailable } from '../../lib/store/lock-store.js';
import { healthWithin, nodeHealth } from '../../lib/store/redis/node/node-health.js';
import type { Server } from '../../lib/store/redis/node/server.js';
import type { NodeTrial, Place } from '../../lib/store/redis/node/trial.js';
import { Scheduler } from '../../lib/time/scheduler.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const WELL: NodeHealth = {
  ...{ node: 'a:6379', reachable: true, latencyMs: 1, quarantinedForMs: 0 },
  problem: undefined,
};

describe('the health of a server within a time', () => {
  it('is its reply, which ends the wait', async () => {
    const runtime = new VirtualRuntime();
    const health = healthWithin('a:6379', Promise.resolve(WELL), 100, new Scheduler(runtime));
    expect(await health).toBe(WELL);
    await runtime.advance(0);
    expect(runtime.timers).toBe(0);
  });

  it('is that it cannot be reached, where it does not reply', async () => {
    const runtime = new VirtualRuntime();
    const silent = new Promise<NodeHealth>(() => undefined);
    let found: NodeHealth | undefined;
    void healthWithin('a:6379', silent, 100, new Scheduler(runtime)).then((health) => {
      found = health;
    });
    await runtime.advance(90);
    expect(found).toBeUndefined();
    await runtime.advance(10);
    expect(found).toStrictEqual({
      ...{ node: 'a:6379', reachable: false, quarantinedForMs: 0 },
      problem: 'no answer within 100 ms',
    });
  });
});

describe('the health of a master that is not connected', () => {
  const FAILED: Unavailable = {
    status: 'unavailable',
    nodes: [{ node: 'a:6379', kind: 'connection', message: 'connect ECONNREFUSED' }],
    transient: true,
  };

  it.each([
    ['grants', undefined, { reachable: true, problem: undefined }],
    ['fails', FAILED, { reachable: false, problem: 'connect ECONNREFUSED' }],
  ])('is that of a trial, which connects to it and %s', async (_, failed, expected) => {
    const place: Place = { name: 'a:6379', reachable: undefined, serves: () => true };
    const trial = { places: () => [place], tryGranting: () => Promise.resolve(failed) };
    const found = nodeHealth({} as Server, trial as unknown as NodeTrial);
    expect([...found.keys()]).toEqual(['a:6379']);
    expect(await found.get('a:6379')).toStrictEqual({
      ...{ node: 'a:6379', quarantinedForMs: 0 },
      ...expected,
    });
  });
});

it('the health of a closed service is that of a store that cannot be reached', async () => {
  const locks = new LockService({ store: 'memory' });
  await locks.shutdown(0);
  expect(await locks.health()).toStrictEqual({
    nodes: [
      {
        ...{ node: 'store', reachable: false, quarantinedForMs: 0 },
        problem: 'the lock service is closed',
      },
    ],
    quorum: 1,
    hasQuorum: false,
  });
});
