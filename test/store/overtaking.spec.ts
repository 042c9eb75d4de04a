import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { keepsForMs } from '../../lib/store/overtaking.js';
import { KEEPS_FOR } from '../../lib/store/redis/scripts/line.js';
import { watchHandles } from '../support/no-leaks.js';
import { RedisServer } from '../support/redis-server.js';

const handles = watchHandles();
let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});

afterAll(async () => {
  await server.stop();
  await handles.expectNoneOpen();
});

describe('for how long a caller of several keys keeps those that are free', () => {
  it('is the same in the scripts and in memory, at every age', async () => {
    const years = [1, 60].map((count) => count * 365 * 86_400_000);
    const ages = [...Array.from({ length: 400 }, (_, step) => step * 50 + (step % 7)), ...years];
    const inScripts = await server.command(
      'EVAL',
      `local now, found = 0, {} ${KEEPS_FOR} for i, age in ipairs(ARGV) do found[i] = keeps_for(-age * 1000, '30000') end return found`,
      0,
      ...ages,
    );
    expect(inScripts).toEqual(ages.map(keepsForMs));
  });

  it('is open to others at first, and between two windows', () => {
    const changes = Array.from({ length: 12_000 }, (_, ageMs) => ageMs).filter(
      (ageMs) => keepsForMs(ageMs) > 0 !== keepsForMs(ageMs - 1) > 0,
    );
    expect(changes).toEqual([1_000, 2_000, 2_250, 4_250, 4_500, 8_500, 8_750]);
  });
});
