import { describe, expect, it } from '@jest/globals';
import { compare, variantsOf } from '../../../bench/src/compare.mjs';
import { atLeast, atMost, judge, medianOf } from '../../../bench/src/judge.mjs';

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);
const around = (median: number, spread: number, count = 9): number[] =>
  upTo(count).map((place) => median + (spread * (place - (count + 1) / 2)) / ((count - 1) / 2));

describe('the figures of a row', () => {
  it('have the middle value as their median, in whatever order they are', () => {
    expect(medianOf([10, 9, 100])).toBe(10);
    expect(medianOf([4, 1, 3, 2])).toBe(2.5);
  });

  // Tables of the sign test: Conover, Practical Nonparametric Statistics, section 3.4.
  it.each([
    [6, 1, 6],
    [8, 1, 8],
    [9, 2, 8],
    [11, 2, 10],
    [12, 3, 10],
    [20, 6, 15],
    [40, 14, 27],
  ])('have, of %d rounds, the values number %d and %d as the ends of the interval', (...row) => {
    const [count, low, high] = row;
    expect(judge(upTo(count).reverse())).toMatchObject({ low, high });
  });

  it('have an interval that contains the true median in at least 95 of 100 runs', () => {
    let state = 1;
    const random = (): number => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
    const runs = 4_000;
    for (const count of [6, 9, 17, 40]) {
      let hits = 0;
      for (let run = 0; run < runs; run += 1) {
        // Skewed, as times are: the median of 1 / (1 - x) is 2.
        const { low, high } = judge(upTo(count).map(() => 1 / (1 - random())));
        if (low <= 2 && 2 <= high) hits += 1;
      }
      expect(hits / runs).toBeGreaterThan(0.945);
    }
  });

  it('have no interval with fewer than six rounds, and are not certain', () => {
    expect(judge([1, 1, 1, 1, 1], atLeast(0.5))).toEqual({
      median: 1,
      low: -Infinity,
      high: Infinity,
      isPrecise: false,
      verdict: 'not certain',
    });
  });

  it.each([[NaN], [Infinity]])('are refused if one of them is %d', (value) => {
    expect(() => judge([1, value, 1])).toThrow('No numbers');
  });
});

describe('a must', () => {
  it.each([
    // The whole interval is on one side.
    [around(1.2, 0.02), 'met', 'missed'],
    [around(0.8, 0.02), 'missed', 'met'],
    [around(2, 0.9), 'met', 'missed'],
    [around(0.5, 0.4), 'missed', 'met'],
    // The must is inside of a precise interval: the median decides.
    [around(1.01, 0.05), 'met', 'missed'],
    [around(0.99, 0.05), 'missed', 'met'],
    [around(1, 0.05), 'met', 'met'],
    // It is inside of a wide one.
    [around(1.1, 0.3), 'not certain', 'not certain'],
    [around(0.9, 0.3), 'not certain', 'not certain'],
  ])('of 1 is judged by the interval, and by the median: %j', (values, least, most) => {
    expect(judge(values, atLeast(1)).verdict).toBe(least);
    expect(judge(values, atMost(1)).verdict).toBe(most);
  });

  it('is precise up to 5 % of the median to each side', () => {
    // Of nine values the second and the eighth are the ends: three quarters of the spread.
    expect(judge(around(100, (5 * 4) / 3 - 0.01)).isPrecise).toBe(true);
    expect(judge(around(100, (5 * 4) / 3 + 0.01)).isPrecise).toBe(false);
    expect(judge([95, 95, 100, 100, 100, 100, 100, 100, 100]).isPrecise).toBe(true);
    expect(judge([94, 94, 100, 100, 100, 100, 100, 100, 100]).isPrecise).toBe(false);
    expect(judge([100, 100, 100, 100, 100, 100, 100, 105, 105]).isPrecise).toBe(true);
    expect(judge([100, 100, 100, 100, 100, 100, 100, 106, 106]).isPrecise).toBe(false);
    expect(judge(around(-100, 4)).isPrecise).toBe(true);
  });

  it('is not decided by one round that is far off', () => {
    expect(judge([...around(1.2, 0.02), 0.1], atLeast(1)).verdict).toBe('met');
  });

  it('is missed by a difference below zero that had to be above', () => {
    expect(judge(around(-1, 0.01), atLeast(0)).verdict).toBe('missed');
    expect(judge(around(-1, 0.01), atMost(0.1)).verdict).toBe('met');
  });

  it('may be missing: then there is no verdict', () => {
    expect(judge(around(1, 0.01)).verdict).toBeUndefined();
  });
});

describe('rounds', () => {
  const rows = [
    { name: 'rate', figure: 'ours.rate', against: 'theirs.rate', must: atLeast(2) },
    { name: 'wait', figure: 'ours.wait', must: atMost(5) },
  ];

  it('measure the variants in turns, and compare those of one round', async () => {
    const order: string[] = [];
    let speed = 0;
    const variant = (name: string, factor: number) => () => {
      order.push(name);
      // The machine becomes faster all the time: only figures of one round can be compared.
      if (order.length % 2 === 1) speed += 1;
      return Promise.resolve({ rate: speed * factor, wait: 4 });
    };
    const judged = await compare(rows, { ours: variant('a', 3), theirs: variant('b', 1) }, 40);
    expect(order.join('')).toBe('abbaabbaabbaabbaab');
    expect(judged).toMatchObject([
      { name: 'rate', median: 3, low: 3, high: 3, verdict: 'met', rounds: 9 },
      { name: 'wait', median: 4, verdict: 'met', rounds: 9 },
    ]);
  });

  it('go on up to the limit while a row is not precise', async () => {
    let count = 0;
    const variants = {
      ours: () => Promise.resolve({ rate: (count += 1) % 2 === 0 ? 1 : 4, wait: 4 }),
      theirs: () => Promise.resolve({ rate: 1 }),
    };
    const [rate, wait] = await compare(rows, variants, 17);
    expect(rate).toMatchObject({ low: 1, high: 4, verdict: 'not certain', rounds: 17 });
    expect(wait).toMatchObject({ verdict: 'met', rounds: 17 });
  });

  it('name the row that has no number', async () => {
    const variants = {
      ours: () => Promise.resolve({ rate: 1, wait: 1 }),
      theirs: () => Promise.resolve({ rate: 0 }),
    };
    await expect(compare(rows, variants, 9)).rejects.toThrow('rate: No numbers: Infinity');
  });

  it('measure only what the rows name', () => {
    expect([...variantsOf(rows)]).toEqual(['ours', 'theirs']);
    expect([...variantsOf(rows.slice(1))]).toEqual(['ours']);
  });
});
