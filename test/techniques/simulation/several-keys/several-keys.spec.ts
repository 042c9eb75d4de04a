import { beforeAll, describe, expect, it } from '@jest/globals';
import { ownTurn } from '../world/settle.js';
import { grantedPart, type Around } from './hot-key.js';
import { brief, plain, RULE } from './orders.js';
import { play, shapeOf, type Played, type Shape } from './play.js';

const SEEDS = Array.from({ length: 40 }, (_, index) => index + 1);

interface World {
  readonly shape: Shape;
  readonly brief: Played;
  readonly plain: Played;
}

const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);

describe('the rule by which a call takes several keys, in random worlds', () => {
  let worlds: readonly World[];

  beforeAll(async () => {
    worlds = await ownTurn(() =>
      SEEDS.map((seed) => {
        const shape = shapeOf(seed);
        return { shape, brief: play(brief(), shape, seed), plain: play(plain, shape, seed) };
      }),
    );
  }, 60_000);

  it('never comes to a standstill, where plain order does in nested sections', () => {
    expect(worlds.map((world) => world.brief.waiting)).toEqual(SEEDS.map(() => 0));
    const still = worlds.filter((world) => world.plain.waiting > 0);
    expect(still.length).toBeGreaterThan(0);
    expect(still.every(({ shape }) => shape.nested > 0)).toBe(true);
  });

  it.each([
    ['short sections', (shape: Shape) => !shape.frozen && shape.longHolders === 0],
    ['long holders', (shape: Shape) => shape.longHolders > 0],
    ['frozen callers', (shape: Shape) => shape.frozen],
  ])('does at least nine tenths of what plain order does: %s', (_, isOne) => {
    const some = worlds.filter(({ shape }) => shape.nested === 0 && isOne(shape));
    expect(some.length).toBeGreaterThan(3);
    for (const count of ['sections', 'ofSeveral'] as const) {
      const [ours, theirs] = (['brief', 'plain'] as const).map((order) =>
        sum(some.map((world) => world[order][count])),
      );
      expect(ours! / theirs!).toBeGreaterThanOrEqual(0.9);
    }
  });
});

describe.each([true, false])(
  'a hot key beside waiting calls of several keys (it is first: %s)',
  (isHotFirst) => {
    const part = (around: Omit<Around, 'isHotFirst'>, limits = RULE): Promise<number> =>
      ownTurn(() => grantedPart(brief(limits), { ...around, isHotFirst }));

    it.each([1, 3, 10])(
      'is free while %i wait for keys that are held throughout',
      async (waiters) => {
        expect(await part({ waiters, jobMs: Infinity })).toBeGreaterThanOrEqual(0.95);
      },
    );

    it('is free while a call comes each second', async () => {
      expect(await part({ waiters: 60, jobMs: Infinity, everyMs: 1_000 })).toBeGreaterThanOrEqual(
        0.9,
      );
    });

    it.each([
      [1, 0.95],
      [3, 0.9],
      [10, 0.8],
    ])('is free while %i wait for jobs of 3 s', async (waiters, least) => {
      const around = { waiters, jobMs: 3_000 };
      expect(await part(around)).toBeGreaterThanOrEqual(least);
    });
  },
);

describe('a hot key beside ten callers whose other keys go from one job of 3 s to the next', () => {
  const part = (limits = RULE): Promise<number> =>
    ownTurn(() => grantedPart(brief(limits), { waiters: 10, jobMs: 3_000, isHotFirst: true }));

  it('is free less often if calls hold it for 1 s from their first round', async () => {
    expect(await part({ ...RULE, firstMs: 1_000 })).toBeLessThan(0.8);
  });

  it('is hardly ever free if they forget which keys are held for long, because the holder has often just begun', async () => {
    expect(await part({ ...RULE, remembers: false })).toBeLessThan(0.1);
  });
});
