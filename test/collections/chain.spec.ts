import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Chain, type Linked } from '../../lib/collections/chain.js';

class Bead implements Linked<Bead> {
  chain: Chain<Bead> | undefined;
  before: Bead | undefined;
  after: Bead | undefined;
}

const beads = (count: number): readonly Bead[] => Array.from({ length: count }, () => new Bead());

describe('a chain', () => {
  it('has its entries in the order in which they were added, whichever are taken out', () => {
    const steps = fc.array(fc.record({ adds: fc.boolean(), bead: fc.nat(9) }), { maxLength: 60 });
    fc.assert(
      fc.property(steps, (taken) => {
        const all = beads(10);
        const chain = new Chain<Bead>();
        let expected: Bead[] = [];
        for (const { adds, bead: index } of taken) {
          const bead = all[index]!;
          const isThere = expected.includes(bead);
          if (!adds) {
            expect(chain.delete(bead)).toBe(isThere);
            expected = expected.filter((other) => other !== bead);
          } else if (!isThere) {
            chain.add(bead);
            expected.push(bead);
          }
          expect(chain.all).toEqual(expected);
          expect(chain.first).toBe(expected[0]);
          expect(chain.isEmpty).toBe(expected.length === 0);
          expect(all.filter((each) => chain.has(each))).toHaveLength(expected.length);
        }
      }),
    );
  });

  it('leaves nothing in an entry that is taken out', () => {
    const chain = new Chain<Bead>();
    const all = beads(3);
    for (const bead of all) chain.add(bead);
    const [, middle] = all;
    chain.delete(middle!);
    expect([middle?.chain, middle?.before, middle?.after]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('takes out no entry of another chain', () => {
    const [chain, other] = [new Chain<Bead>(), new Chain<Bead>()];
    const [bead] = beads(1);
    other.add(bead!);
    expect(chain.delete(bead!)).toBe(false);
    expect(other.all).toEqual([bead]);
  });

  it('tells when its last entry is taken out, and not before', () => {
    let emptied = 0;
    const chain = new Chain<Bead>({
      onEmpty: () => {
        emptied += 1;
      },
    });
    const [one, two] = beads(2);
    chain.add(one!);
    chain.add(two!);
    chain.delete(one!);
    chain.delete(one!);
    expect(emptied).toBe(0);
    chain.delete(two!);
    expect(emptied).toBe(1);
  });
});
