import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { BriefMap } from '../../lib/collections/brief-map.js';
import { BriefSet } from '../../lib/collections/brief-set.js';
import { MOST_DELETIONS } from '../../lib/collections/most-deletions.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (how: { readonly type: 'major' | 'minor' }) => void;

const KEYS = 2 * MOST_DELETIONS;
const steps = fc.array(
  fc.record({
    verb: fc.constantFrom('set', 'set', 'delete', 'delete', 'clear'),
    from: fc.nat(KEYS),
    count: fc.nat(KEYS),
  }),
  { maxLength: 30 },
);

describe('a collection of what comes and goes', () => {
  it('is a Map, whatever is done with it', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const [brief, plain] = [new BriefMap<number, number>(), new Map<number, number>()];
        const deleted: boolean[] = [];
        for (const [index, { verb, from, count }] of all.entries()) {
          if (verb === 'clear') [brief, plain].forEach((each) => each.clear());
          else
            for (let key = from; key < from + count; key += 1) {
              if (verb === 'set') [brief, plain].forEach((each) => void each.set(key, index));
              else deleted.push(brief.delete(key) === plain.delete(key));
            }
        }
        expect(deleted).not.toContain(false);
        expect([...brief]).toEqual([...plain]);
        expect([[...brief.keys()], [...brief.values()]]).toEqual([
          [...plain.keys()],
          [...plain.values()],
        ]);
        expect([...plain.keys()].map((key) => brief.get(key))).toEqual([...plain.values()]);
        expect([brief.size, brief.has(1), brief.get(1)]).toEqual([
          plain.size,
          plain.has(1),
          plain.get(1),
        ]);
      }),
    );
  });

  it('is a Set, whatever is done with it', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const [brief, plain] = [new BriefSet<number>(), new Set<number>()];
        const deleted: boolean[] = [];
        for (const { verb, from, count } of all) {
          if (verb === 'clear') [brief, plain].forEach((each) => each.clear());
          else
            for (let value = from; value < from + count; value += 1) {
              if (verb === 'set') [brief, plain].forEach((each) => void each.add(value));
              else deleted.push(brief.delete(value) === plain.delete(value));
            }
        }
        expect(deleted).not.toContain(false);
        expect([...brief]).toEqual([...plain]);
        expect([brief.size, brief.has(1), brief.first]).toEqual([
          plain.size,
          plain.has(1),
          [...plain][0],
        ]);
      }),
    );
  });

  it('lets entries be deleted while somebody iterates', () => {
    const brief = new BriefMap<number, string>();
    for (let key = 0; key < 3 * MOST_DELETIONS; key += 1) brief.set(key, 'x');
    const seen: number[] = [];
    for (const [key] of brief) {
      seen.push(key);
      brief.delete(key);
    }
    expect(seen).toHaveLength(3 * MOST_DELETIONS);
    expect(brief.size).toBe(0);
  });

  describe.each([
    ['map', () => new BriefMap<number, string>()],
    ['set', () => new BriefSet<number>()],
  ])('as a %s', (_, make) => {
    it.each([
      [500, 1_000],
      [MOST_DELETIONS, 300],
    ])('starts anew after %d deletions from %d entries', (deletions, entries) => {
      const brief = make();
      for (let key = 0; key < entries; key += 1)
        if (brief instanceof BriefMap) brief.set(key, 'x');
        else brief.add(key);
      // It reads the present Map or Set. When the collection has started anew, nothing is deleted from that one any more.
      const first = brief[Symbol.iterator]();
      for (let key = 0; key < deletions + 1; key += 1) brief.delete(key);
      expect([...first]).toHaveLength(entries - deletions);
      expect(brief.size).toBe(entries - deletions - 1);
    });
  });

  const ENTRIES = 20_000;
  const NUMBERS = 128; // 1 kB an entry
  const mb = (): number => process.memoryUsage().heapUsed / 1e6;

  /** MB that are left of 20 MB of entries, of which there were 64 at a time, without a full collection. */
  function left(
    add: (entry: readonly number[]) => void,
    drop: (entry: readonly number[]) => void,
  ): number {
    add([]);
    collect({ type: 'major' });
    const before = mb();
    const there: (readonly number[])[] = [];
    for (let index = 0; index < ENTRIES; index += 1) {
      const entry = new Array<number>(NUMBERS).fill(index);
      add(entry);
      const oldest = there.push(entry) > 64 ? there.shift() : undefined;
      if (oldest !== undefined) drop(oldest);
      if (index % 500 === 0) collect({ type: 'minor' });
    }
    collect({ type: 'minor' });
    return mb() - before;
  }

  it.each([
    ['map', new BriefMap<readonly number[], string>()],
    ['set', new BriefSet<readonly number[]>()],
  ])('keeps nothing that was deleted until the next full collection, as a %s', (_, brief) => {
    const add = (entry: readonly number[]): void => {
      if (brief instanceof BriefMap) brief.set(entry, 'there');
      else brief.add(entry);
    };
    expect(left(add, (entry) => brief.delete(entry))).toBeLessThan(5);
  });
});
