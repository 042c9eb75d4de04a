import { describe, expect, it } from '@jest/globals';
import type { ModuleRef } from '@nestjs/core';
import type { HealthIndicatorService } from '@nestjs/terminus';
import { getLockServiceToken, LockConfigurationError } from 'nestjs-holdfast';
import { LockHealthIndicator } from 'nestjs-holdfast/terminus';
import type { NodeHealth, StoreHealth } from '../../lib/store/lock-store.js';

const NODE = { node: '127.0.0.1:6379', reachable: true, quarantinedForMs: 0 } as NodeHealth;
const AWAY = { ...NODE, reachable: false };

const HEALTHY = { nodes: [NODE, NODE, NODE], hasQuorum: true } as unknown as StoreHealth;
const DEGRADED = { nodes: [NODE, AWAY, NODE], hasQuorum: true } as unknown as StoreHealth;
const DOWN = { nodes: [AWAY, AWAY, NODE], hasQuorum: false } as unknown as StoreHealth;

/** A session of Terminus with these verbs. It returns the verb that was called, and its facts. */
const session =
  (...verbs: readonly string[]) =>
  (key: string) =>
    Object.fromEntries(verbs.map((verb) => [verb, (facts: object) => ({ [key]: [verb, facts] })]));
const TERMINUS_11 = { check: session('up', 'down') } as unknown as HealthIndicatorService;
const TERMINUS_12 = {
  check: session('up', 'down', 'degraded'),
} as unknown as HealthIndicatorService;

/** An indicator beside the services of an application, and what they were asked. */
function stage(terminus: HealthIndicatorService, health: StoreHealth, name?: string | symbol) {
  const limits: number[] = [];
  const service = {
    healthWithin: async (ms: number) => {
      limits.push(ms);
      return health;
    },
  };
  const modules = {
    get: (token: unknown, how: object) => {
      expect(how).toEqual({ strict: false });
      if (token !== getLockServiceToken(name)) throw new Error('unknown');
      return service;
    },
  } as unknown as ModuleRef;
  return { limits, indicator: new LockHealthIndicator(terminus, modules) };
}

describe('a health indicator', () => {
  it.each([
    ['up', HEALTHY, TERMINUS_11, 3],
    ['up', HEALTHY, TERMINUS_12, 3],
    ['up', DEGRADED, TERMINUS_11, 2],
    ['degraded', DEGRADED, TERMINUS_12, 2],
    ['down', DOWN, TERMINUS_11, 1],
    ['down', DOWN, TERMINUS_12, 1],
  ])('is %s', async (verb, health, terminus, nodesGranting) => {
    const { indicator } = stage(terminus, health);
    const facts = {
      ...(health !== HEALTHY && { message: expect.stringContaining('of 3 nodes') }),
      ...{ nodesGranting, nodesTotal: 3 },
    };
    expect(await indicator.check('locks')).toStrictEqual({ locks: [verb, facts] });
  });

  it('has the nodes where the details are asked for', async () => {
    const { indicator } = stage(TERMINUS_12, HEALTHY);
    expect(await indicator.check('locks', { details: true })).toEqual({
      locks: ['up', { nodesGranting: 3, nodesTotal: 3, nodes: HEALTHY.nodes }],
    });
  });

  it('has 800 ms, or the time that is given', async () => {
    const { indicator, limits } = stage(TERMINUS_12, HEALTHY);
    await indicator.check('locks');
    await indicator.check('locks', { timeout: '300ms' });
    expect(limits).toEqual([800, 300]);
  });

  it.each([undefined, 'jobs', Symbol('jobs')])('asks the service %p', async (name) => {
    const { indicator } = stage(TERMINUS_12, HEALTHY, name);
    const options = name === undefined ? {} : { name };
    expect(await indicator.check('locks', options)).toMatchObject({ locks: ['up', {}] });
  });

  it.each<[object, string]>([
    [{}, 'found no lock service without a name. Import LockModule.forRoot into the root module'],
    [{ name: 'audit' }, 'found no lock service named "audit". Import LockModule.forRoot'],
    [{ name: Symbol('audit') }, 'found no lock service named "Symbol(audit)"'],
    [{ instance: 'jobs' }, 'Give "name", the name of the lock service.'],
    [{ service: 'jobs' }, 'LockHealthIndicator.check() has no option "service"'],
    [{ timeout: 0 }, 'Option "timeout" must be a duration'],
    [{ timeout: 'soon' }, 'Option "timeout" must be a duration'],
    [{ details: 'yes' }, 'Option "details"'],
  ])('refuses %p', async (options, problem) => {
    const { indicator } = stage(TERMINUS_12, HEALTHY, 'jobs');
    const checking = indicator.check('locks', options);
    await expect(checking).rejects.toThrow(LockConfigurationError);
    await expect(checking).rejects.toThrow(problem);
  });
});
