import { expect, it } from '@jest/globals';
import { SweepPace } from '../../lib/store/sweep-pace.js';

it('a table is looked through when it has its first size, and then when it has doubled', () => {
  const pace = new SweepPace(10);
  const due = (...sizes: readonly number[]) => sizes.map((size) => pace.isDue(size));
  expect(due(0, 9, 10, 11)).toEqual([false, false, true, true]);
  pace.swept(8);
  expect(due(15, 16)).toEqual([false, true]);
  pace.swept(2);
  expect(due(9, 10)).toEqual([false, true]);
});
