import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { drawingOf } from './drawing.js';
import { ExplorerWorld } from './explorer-world.js';
import type { Fact } from './facts.js';
import { pictureOf } from './picture.js';
import { SCENARIOS, scenarioNamed } from './scenarios.js';
import type { Setup } from './setup.js';
import { sentencesOf } from './sentences.js';

/** Everything that a scenario claims has to be so whatever chance decides. */
const SEEDS = [1, 2, 3];

/** Between a moment and what a message brings about: twice there and back. */
const SOON_MS = 100;

async function played(
  name: string,
  seed = 1,
  others: Partial<Setup> = {},
): Promise<readonly Fact[]> {
  const { setup, steps, lengthMs } = scenarioNamed(name)!;
  const world = new ExplorerWorld({ ...setup, seed, ...others }, steps, () => setImmediate());
  await world.playTo(lengthMs);
  return world.facts;
}

type FactOf<Type extends Fact['type']> = Fact & { readonly type: Type };

const all = <Type extends Fact['type']>(facts: readonly Fact[], type: Type) =>
  facts.filter((fact): fact is FactOf<Type> => fact.type === type);

/** The one fact of its type about a process. */
function of<Type extends Fact['type']>(
  facts: readonly Fact[],
  type: Type,
  process: number,
): FactOf<Type> {
  const found = all(facts, type).filter((fact) => 'process' in fact && fact.process === process);
  expect(found).toHaveLength(1);
  return found[0]!;
}

/** Until when a holder could rely on its lock, as it knew at that time. */
const reliedUntil = (facts: readonly Fact[], process: number, atMs: number): number =>
  Math.max(
    ...[...all(facts, 'holds'), ...all(facts, 'renewed')]
      .filter((fact) => fact.process === process && fact.atMs <= atMs)
      .map(({ untilMs }) => untilMs),
  );

/** The same for what a node had written down. */
const keptUntil = (facts: readonly Fact[], process: number, atMs: number): number =>
  Math.max(
    ...all(facts, 'says')
      .filter(({ holders, atMs: at }) => at <= atMs && holders.includes(process))
      .map(({ untilMs }) => untilMs),
  );

describe.each(SEEDS)('a scenario of the explorer, with seed %i', (seed) => {
  it('hand-over: the node never says that the key is free, and tokens grow in the order of the line', async () => {
    const facts = await played('hand-over', seed);
    const granted = all(facts, 'granted');
    expect(granted.map(({ process }) => process)).toEqual([0, 1, 2, 3]);
    const ends = all(facts, 'ends work');
    for (const [index, { token, atMs }] of granted.slice(1).entries()) {
      expect(token).toBeGreaterThan(granted[index]!.token);
      // The first lock was granted plainly. It is released plainly, too, which finds callers in line.
      expect(atMs - ends[index]!.atMs).toBeLessThan(index === 0 ? 2 * SOON_MS : SOON_MS);
    }
    expect(all(facts, 'says').findIndex(({ holders }) => holders.length === 0)).toBe(
      all(facts, 'says').length - 1,
    );
  });

  it('holder-dies: the next in line gets the key when the TTL is over, and not before', async () => {
    const facts = await played('holder-dies', seed);
    const { atMs: diedAtMs } = of(facts, 'dies', 0);
    const overAtMs = keptUntil(facts, 0, diedAtMs + SOON_MS);
    const { atMs } = of(facts, 'granted', 1);
    expect(atMs).toBeGreaterThan(overAtMs);
    expect(atMs).toBeLessThan(overAtMs + SOON_MS);
    expect(all(facts, 'released').map(({ process }) => process)).toEqual([1, 2]);
  });

  it('holder-paused: the second holder has the larger token, and the late write of the first is refused', async () => {
    const facts = await played('holder-paused', seed);
    const [first, second] = [of(facts, 'granted', 0), of(facts, 'granted', 1)];
    expect(second.atMs).toBeGreaterThan(reliedUntil(facts, 0, second.atMs));
    expect(second.token).toBeGreaterThan(first.token);
    const { atMs: awakeAtMs } = of(facts, 'resumes', 0);
    expect(of(facts, 'lost', 0)).toMatchObject({ reason: 'expired', atMs: awakeAtMs });
    expect(of(facts, 'writes', 1)).toMatchObject({ isAccepted: true });
    expect(of(facts, 'writes', 0)).toMatchObject({
      isAccepted: false,
      newestToken: second.token,
    });
  });

  it('data-lost: two hold the key until the next renewal of the first, and the second has the larger token', async () => {
    const facts = await played('data-lost', seed);
    const [first, second] = [of(facts, 'granted', 0), of(facts, 'granted', 1)];
    const lost = of(facts, 'lost', 0);
    const { ttlMs } = scenarioNamed('data-lost')!.setup;
    expect(second.atMs).toBeLessThan(lost.atMs);
    expect(lost.atMs).toBeLessThan(second.atMs + ttlMs / 3);
    expect(lost.reason).toBe('stolen');
    expect(second.token).toBeGreaterThan(first.token);
    expect(all(facts, 'writes').map(({ process }) => process)).toEqual([1]);
  });

  it('data-lost, with restartGuard: no second holder, and the first keeps its lock', async () => {
    const facts = await played('data-lost', seed, { restartGuard: true });
    expect(all(facts, 'lost')).toEqual([]);
    expect(of(facts, 'granted', 1).atMs).toBeGreaterThan(of(facts, 'ends work', 0).atMs);
  });

  it('node-down: two of three nodes grant and hand over, and the third learns of the lock when it is back', async () => {
    const facts = await played('node-down', seed);
    const granted = all(facts, 'granted');
    expect(granted.map(({ process }) => process)).toEqual([0, 1, 2]);
    expect(all(facts, 'lost')).toEqual([]);
    const [back] = all(facts, 'node starts');
    const third = all(facts, 'says').filter(({ node }) => node === 2);
    expect(granted[1]!.atMs).toBeLessThan(back!.atMs);
    expect(third[0]).toMatchObject({ holders: [1] });
    expect(third[0]!.atMs).toBeGreaterThan(back!.atMs);
  });

  it('majority-cut: the holder detects the loss by its deadline, before the next one gets the key', async () => {
    const facts = await played('majority-cut', seed);
    const lost = of(facts, 'lost', 0);
    expect(lost.reason).toBe('store-unavailable');
    expect(lost.atMs).toBeLessThanOrEqual(reliedUntil(facts, 0, lost.atMs));
    const [first, second] = [of(facts, 'granted', 0), of(facts, 'granted', 1)];
    expect(second.atMs).toBeGreaterThan(lost.atMs);
    expect(second.token).toBeGreaterThan(first.token);
  });
});

describe('the explorer', () => {
  it('shows the same world for the same seed, and another one for another', async () => {
    const facts = await played('majority-cut', 1);
    expect(await played('majority-cut', 1)).toEqual(facts);
    expect(await played('majority-cut', 2)).not.toEqual(facts);
  });

  it('keeps its claims where clocks are wrong, and packets are lost', async () => {
    const network = { latencyMs: 60, lossRate: 0.1 };
    const facts = await played('majority-cut', 1, { skewMs: 30_000, network });
    const [first, second] = [of(facts, 'granted', 0), of(facts, 'granted', 1)];
    expect(second.atMs).toBeGreaterThan(of(facts, 'lost', 0).atMs);
    expect(second.token).toBeGreaterThan(first.token);
  });

  it('goes the same way in small steps, and with actions at the present', async () => {
    const { setup, steps, lengthMs } = scenarioNamed('holder-paused')!;
    const world = new ExplorerWorld(setup, [], () => setImmediate());
    for (let ms = 0; ms <= lengthMs; ms += 500) {
      for (const { atMs, action } of steps) if (atMs === ms) world.plan(action, ms);
      await world.playTo(ms);
    }
    const told = (facts: readonly Fact[]) => facts.filter(({ type }) => type !== 'says');
    expect(told(world.facts)).toEqual(told(await played('holder-paused')));
  });

  it('lets readers hold the key together, and a restarted process ask again', async () => {
    const { setup } = scenarioNamed('holder-dies')!;
    const reads = { kind: 'lock', mode: 'shared', workMs: 2_000 } as const;
    const steps = [
      { atMs: 500, action: { ...reads, process: 0 } },
      { atMs: 600, action: { ...reads, process: 1 } },
      { atMs: 1_000, action: { kind: 'restart', process: 0 } },
      { atMs: 2_000, action: { ...reads, process: 0 } },
    ] as const;
    const world = new ExplorerWorld(setup, steps, () => setImmediate());
    await world.playTo(6_000);
    expect(all(world.facts, 'granted').map(({ process, call }) => [process, call])).toEqual([
      [0, 'p0#1'],
      [1, 'p1#1'],
      [0, 'p0.2#1'],
    ]);
    expect(all(world.facts, 'says').map(({ holders }) => holders)).toContainEqual([0, 1]);
    expect(all(world.facts, 'writes')).toEqual([]);
  });

  it.each(SCENARIOS)('draws and tells $name', async ({ name, setup, lengthMs }) => {
    const facts = await played(name);
    const { shapes, lanes } = drawingOf(pictureOf(facts, setup, lengthMs), lengthMs, 70);
    expect(lanes).toHaveLength(setup.processes + setup.nodes + 1);
    expect(JSON.stringify(shapes)).not.toMatch(/NaN|null|undefined|Infinity/);
    const kinds = shapes.map(({ attributes }) => attributes['data-kind']);
    expect(kinds.filter((kind) => kind === 'holds')).toHaveLength(all(facts, 'granted').length);
    const text = sentencesOf(facts).map((sentence) => sentence.text);
    expect(text.join('\n')).not.toMatch(/undefined|NaN/);
  });

  it('has every scenario on its page', () => {
    const page = readFileSync(
      new URL('../../../../docs/internals/explorer.md', import.meta.url),
      'utf8',
    );
    for (const { name, title, look } of SCENARIOS)
      expect(page).toContain(`- **${title}** (\`#scenario=${name}\`). ${look}`);
  });
});
