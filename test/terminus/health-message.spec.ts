import { describe, expect, it } from '@jest/globals';
import { healthMessage, isGranting } from '../../lib/terminus/lock-health.indicator.js';
import type { NodeHealth } from '../../lib/store/lock-store.js';

const GRANTING: NodeHealth = {
  node: '127.0.0.1:6379',
  reachable: true,
  latencyMs: 1,
  quarantinedForMs: 0,
  problem: undefined,
};
const AWAY = { ...GRANTING, reachable: false, problem: 'ECONNREFUSED' } as NodeHealth;
const QUARANTINED = { ...GRANTING, quarantinedForMs: 1 };
const REFUSING = { ...GRANTING, problem: 'NOPERM' };

const messageOf = (hasQuorum: boolean, ...nodes: NodeHealth[]): string | undefined =>
  healthMessage({ nodes, hasQuorum, quorum: 1 });

describe('a server', () => {
  it('grants locks when nothing is against it', () => {
    expect([GRANTING, AWAY, QUARANTINED, REFUSING].map(isGranting)).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

describe('the message of a health check', () => {
  it('is missing while all servers grant locks', () => {
    expect(messageOf(true, GRANTING)).toBeUndefined();
    expect(messageOf(true, GRANTING, GRANTING, GRANTING)).toBeUndefined();
  });

  it.each([
    ['not reachable', AWAY],
    ['in quarantine', QUARANTINED],
    ['refusing to grant locks', REFUSING],
    ['not reachable', { ...AWAY, quarantinedForMs: 1 }],
  ])('of one server says that it is %s', (state, node) => {
    expect(messageOf(false, node)).toBe(
      `No lock can be granted now. The lock store is ${state}. The log of the application says why.`,
    );
  });

  it('warns of locks in memory in production, which exclude no other process', () => {
    expect(
      healthMessage({ nodes: [GRANTING], hasQuorum: true, quorum: 1, warning: 'in memory' }),
    ).toBe('Locks are granted to this process only. The log of the application says why.');
  });

  it('counts the states of several', () => {
    expect(messageOf(true, GRANTING, AWAY, GRANTING)).toBe(
      'Locks are granted. 1 of 3 nodes grant no locks (1 not reachable). The log of the application says why.',
    );
    expect(messageOf(false, AWAY, REFUSING, QUARANTINED, AWAY, GRANTING)).toBe(
      'No lock can be granted now. 4 of 5 nodes grant no locks (2 not reachable, 1 refusing to grant locks, 1 in quarantine). The log of the application says why.',
    );
  });

  it('says so where no server is known, and where each one grants but not all of them together', () => {
    const whys = ' The log of the application says why.';
    expect(messageOf(false)).toBe(
      `No lock can be granted now. 0 of 0 nodes grant no locks ().${whys}`,
    );
    expect(messageOf(false, GRANTING)).toBe(
      `No lock can be granted now. 0 of 1 nodes grant no locks ().${whys}`,
    );
  });
});
