import { describe, expect, it } from '@jest/globals';
import { share } from '../../support/soak.js';
import { LONGEST_TTL_MS, type Plan, planOf, type Step } from './plan.js';

const SEEDS = Array.from({ length: share(40, 100) }, (_, seed) => seed);
const LENGTH_MS = 20_000;

const plansFor = (nodes: number): readonly Plan[] =>
  SEEDS.map((seed) => planOf({ seed, nodes, lengthMs: LENGTH_MS }));

const stepsOf = (plans: readonly Plan[]): readonly Step[] => plans.flatMap(({ steps }) => steps);

const targetsOf = (step: Step): readonly number[] =>
  step.kind === 'outage' ? step.targets : [step.target];

const isOfClients = ({ kind }: Step): boolean => kind.startsWith('client-');

describe('a plan', () => {
  it('is the same for the same seed, and another for another', () => {
    const planOfSeed = (seed: number): Plan => planOf({ seed, nodes: 3, lengthMs: LENGTH_MS });
    expect(planOfSeed(7)).toEqual(planOfSeed(7));
    expect(planOfSeed(7).steps).not.toEqual(planOfSeed(8).steps);
  });

  it('goes on, when it is longer, where the shorter one of its seed ends', () => {
    const withoutNumbers = ({ steps }: Plan): readonly object[] =>
      steps.map((step) => ({ ...step, step: 0 }));
    const longer = withoutNumbers(planOf({ seed: 7, nodes: 3, lengthMs: 2 * LENGTH_MS }));
    const shorter = withoutNumbers(planOf({ seed: 7, nodes: 3, lengthMs: LENGTH_MS }));
    expect(longer).toEqual(expect.arrayContaining([...shorter]));
    expect(longer.length).toBeGreaterThan(shorter.length);
  });

  it('has clients with hand-off and clients without, in any slot', () => {
    const plans = plansFor(3);
    for (const { withoutHandoff } of plans) expect(new Set(withoutHandoff).size).toBe(2);
    const slots = plans.flatMap(({ withoutHandoff }) => withoutHandoff);
    expect([...new Set(slots)].sort()).toEqual([0, 1, 2, 3]);
  });

  it('is over in time', () => {
    for (const { atMs, forMs } of stepsOf(plansFor(3)))
      expect(atMs + forMs).toBeLessThan(LENGTH_MS);
  });

  it.each([3, 5])('harms a minority of %i servers at a time, unless it is an outage', (nodes) => {
    for (const { steps } of plansFor(nodes)) {
      const ofNodes = steps.filter((step) => !isOfClients(step));
      for (const { atMs } of ofNodes) {
        const harmed = ofNodes
          .filter((step) => step.atMs <= atMs && atMs <= step.atMs + step.forMs)
          .filter(({ kind }) => kind !== 'outage')
          .flatMap(targetsOf);
        expect(new Set(harmed).size).toBe(harmed.length);
        expect(harmed.length).toBeLessThan(nodes / 2);
      }
    }
  });

  it.each([3, 5])('lets outages of %i servers hit a majority that keeps its data', (nodes) => {
    const outages = stepsOf(plansFor(nodes)).filter(({ kind }) => kind === 'outage');
    expect(outages.length).toBeGreaterThan(SEEDS.length);
    for (const outage of outages) {
      expect(new Set(targetsOf(outage)).size).toBe(Math.floor(nodes / 2) + 1);
      expect(outage).toHaveProperty(
        'by',
        expect.stringMatching(/^(node-stopped|silence|refused)$/),
      );
    }
  });

  it('keeps a server that forgets away until every lease that it knew is over', () => {
    const kills = stepsOf(plansFor(3)).filter(({ kind }) => kind === 'node-killed');
    expect(kills.length).toBeGreaterThan(SEEDS.length / 2);
    for (const { forMs } of kills) expect(forMs).toBeGreaterThan(LONGEST_TTL_MS);
  });

  it.each([1, 3, 5])(
    'has every kind of fault that its mode allows to %i servers in 15 seconds',
    (nodes) => {
      const modes = new Set<string>();
      for (const seed of SEEDS) {
        const { steps, mode } = planOf({ seed, nodes, lengthMs: 15_000 });
        modes.add(mode);
        const kinds = ['client-cut-off', 'client-killed', 'client-stopped', 'cut', 'delayed'];
        kinds.push('node-stopped', 'refused', 'silence');
        if (nodes > 1) kinds.push('outage');
        if (nodes > 1 && mode !== 'clocks-set-back') kinds.push('node-killed');
        if (mode === 'guarded') kinds.push('node-restarted');
        expect([...new Set(steps.map(({ kind }) => kind))].sort()).toEqual(kinds.sort());
      }
      expect(modes.size).toBe(3);
    },
  );
});
