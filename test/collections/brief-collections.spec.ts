import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { BriefMap, MOST_DELETIONS } from '../../lib/collections/brief-map.js';
import { RecentMap } from '../../lib/collections/recent-map.js';

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

  it.each([
    [500, 1_000],
    [MOST_DELETIONS, 300],
  ])('starts anew after %d deletions from %d entries', (deletions, entries) => {
    const brief = new BriefMap<number, string>();
    for (let key = 0; key < entries; key += 1) brief.set(key, 'x');
    // It reads the present Map. When the collection has started anew, nothing is deleted from that one any more.
    const first = brief[Symbol.iterator]();
    for (let key = 0; key < deletions + 1; key += 1) brief.delete(key);
    expect([...first]).toHaveLength(entries - deletions);
    expect(brief.size).toBe(entries - deletions - 1);
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

  it('keeps nothing that was deleted until the next full collection', () => {
    const brief = new BriefMap<readonly number[], string>();
    const add = (entry: readonly number[]): void => {
      brief.set(entry, 'there');
    };
    expect(left(add, (entry) => brief.delete(entry))).toBeLessThan(5);
  });
});

describe('a map of what was added last', () => {
  it('drops the oldest entry for a new one, and none for one that it has', () => {
    const recent = new RecentMap<string, number>(2);
    recent.set('a', 1).set('b', 2).set('a', 3);
    expect([...recent]).toEqual([
      ['a', 3],
      ['b', 2],
    ]);
    recent.set('c', 4);
    expect([...recent.keys()]).toEqual(['b', 'c']);
  });
});
