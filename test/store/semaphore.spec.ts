import { describe, expect, it } from '@jest/globals';
import { placesOf } from '../../lib/store/owner-token.js';
import { Random } from '../techniques/faults/random.js';
import { cases } from '../support/cases.js';
import { PlainSemaphore, type Wish } from './plain-semaphore.js';
import {
  idOf,
  MemorySemaphore,
  ScriptedSemaphore,
  type SemaphoreStore,
} from './semaphore-stores.js';

/** Sequences of callers, deaths, places and limits: on the scripts each takes some 30 ms, so no more of them in the longest runs. */
const RUNS = Math.min(cases(100, 1_000), 10_000);
const STEPS = 40;
const TTLS_MS = [100, 700, 5_000];

/** Plays one sequence on a store and on the plain semaphore, and compares what comes of each step. */
async function compare(seed: number, store: SemaphoreStore): Promise<void> {
  const random = new Random(seed);
  const plain = new PlainSemaphore();
  // Mostly all state the same limit.
  const limits = random.chance(0.7) ? [random.between(1, 6)] : [2, 3, 5];
  let most = Math.max(...limits);
  const wishes: Wish[] = [];
  const told: string[] = [];
  const both = async (
    what: string,
    ofStore: () => Promise<boolean>,
    ofPlain: () => boolean,
  ): Promise<void> => {
    const [found, expected] = [await ofStore(), ofPlain()];
    told.push(`${what}: ${String(expected)}`);
    const { holders, line } = await store.state();
    const state = {
      answer: found,
      holders: holders.map(idOf).sort((a, b) => a - b),
      line: line.map(idOf),
    };
    const wanted = { answer: expected, holders: plain.holders, line: plain.line };
    expect({ seed, told, ...state }).toEqual({ seed, told, ...wanted });
    expect(holders.reduce((sum, token) => sum + placesOf(token), 0)).toBeLessThanOrEqual(most);
  };
  const ask = (wish: Wish, waits: boolean): Promise<void> =>
    both(
      `${String(wish.id)} ${waits ? 'waits' : 'asks'} for ${String(wish.places)} of ${String(wish.limit)}`,
      () => store.ask(wish, waits),
      () => plain.ask(wish, waits),
    );
  const byId = (id: number): Wish => wishes.find((wish) => wish.id === id) as Wish;
  for (let step = 0; step < STEPS; step += 1) {
    const chosen = random.fraction();
    const { holders, line } = plain;
    if (chosen < 0.05) {
      const limit = random.chance(0.7) ? random.between(1, 8) : undefined;
      most = Math.max(most, limit ?? 0);
      await both(
        `limit ${String(limit)}`,
        () => store.setLimit(limit).then(() => true),
        () => {
          plain.setLimit(limit);
          return true;
        },
      );
    } else if (chosen < 0.4) {
      const limit = random.pick(limits);
      const places = random.between(1, limit);
      const wish = { id: wishes.length, places, limit, ttlMs: random.pick(TTLS_MS) };
      wishes.push(wish);
      await ask(wish, random.chance(0.7));
    } else if (chosen < 0.5 && line.length > 0) await ask(byId(random.pick(line)), true);
    else if (chosen < 0.6 && holders.length > 0) {
      // Whoever was let in from the line makes it a lease; for others it is a request that is sent twice.
      await ask(byId(random.pick(holders)), true);
    } else if (chosen < 0.7 && holders.length > 0) {
      const wish = byId(random.pick(holders));
      await both(
        `${String(wish.id)} renews`,
        () => store.renew(wish),
        () => plain.renew(wish),
      );
    } else if (chosen < 0.87 && holders.length + line.length > 0) {
      const wish = byId(random.pick([...holders, ...line]));
      await both(
        `${String(wish.id)} leaves`,
        () => store.leave(wish),
        () => plain.leave(wish),
      );
    } else {
      // Some of those who hold it have died, and whoever is next looks when their leases are over.
      plain.nowMs = store.nowMs += random.pick([10, 150, 1_200]);
      told.push(`${String(plain.nowMs)} ms`);
      const [next] = plain.line;
      if (next !== undefined) await ask(byId(next), true);
    }
  }
}

describe.each([
  ['in memory', () => new MemorySemaphore()],
  ['in the scripts', () => new ScriptedSemaphore()],
])('places of a limit %s', (_, open) => {
  it('are given as a plain semaphore gives them, whoever asks for however many, waits, leaves or dies', async () => {
    for (let seed = 1; seed <= RUNS; seed += 1) await compare(seed, open());
  }, 600_000);
});
