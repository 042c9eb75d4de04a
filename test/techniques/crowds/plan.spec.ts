import { describe, expect, it } from '@jest/globals';
import { range } from '../faults/plan.js';
import { type EnginePlan, LONG_STORES, planOf, type StoreKind } from './plan.js';

const LENGTH_MS = 24_000;

const plansFor = (store: StoreKind): readonly EnginePlan[] =>
  range(20).map((seed) => planOf(seed, store, LENGTH_MS));

const kindsOf = (store: StoreKind): ReadonlySet<string> =>
  new Set(plansFor(store).flatMap(({ faults }) => faults.map(({ kind }) => kind)));

describe('a plan of the engine', () => {
  it.each(LONG_STORES)('is the same for the same seed, and another for another: %s', (store) => {
    expect(planOf(7, store, LENGTH_MS)).toEqual(planOf(7, store, LENGTH_MS));
    expect(planOf(7, store, LENGTH_MS).crews).not.toEqual(planOf(8, store, LENGTH_MS).crews);
  });

  it.each(LONG_STORES)('has its faults one after the other: %s', (store) => {
    for (const { faults } of plansFor(store)) {
      const times = faults.map(({ atMs }) => atMs);
      expect(times).toEqual([...times].sort((a, b) => a - b));
    }
  });

  it('moves the slots of Clusters, and of nothing else', () => {
    const moving = LONG_STORES.filter((store) => kindsOf(store).has('slot-moved'));
    expect(moving).toEqual(['cluster', 'cluster-fail-over']);
  });

  it('has two masters die where a replica takes over, and loses no data there', () => {
    for (const store of ['cluster-fail-over', 'sentinel'] as const) {
      for (const { faults } of plansFor(store))
        expect(faults.filter(({ kind }) => kind === 'fail-over')).toHaveLength(2);
      expect(kindsOf(store)).not.toContain('all-data-lost');
    }
  });
});
