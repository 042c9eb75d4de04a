import { describe, expect, it } from '@jest/globals';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { newOwnerToken, type HoldMode } from '../../lib/store/owner-token.js';
import { Random } from '../techniques/faults/random.js';
import { share } from '../support/soak.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const TTL_MS = 1_000;
const STEPS = 40;
const KEY = 'key';

/** A read/write lock as it is described: who holds it how, until when. */
class Model {
  readonly #holds = new Map<number, { mode: HoldMode; until: number }>();
  nowMs = 0;

  modeOf(caller: number): HoldMode | undefined {
    const hold = this.#holds.get(caller);
    return hold !== undefined && hold.until > this.nowMs ? hold.mode : undefined;
  }

  hold(caller: number, mode: HoldMode): void {
    this.#holds.set(caller, { mode, until: this.nowMs + TTL_MS });
  }

  end(caller: number): void {
    this.#holds.delete(caller);
  }

  /** Whether a caller may hold it beside all others. */
  admits(caller: number, mode: HoldMode): boolean {
    const others = [...this.#holds.keys()]
      .filter((other) => other !== caller)
      .flatMap((other) => this.modeOf(other) ?? []);
    if (mode === 'exclusive') return others.length === 0;
    return !others.includes('exclusive');
  }
}

/** One caller does one thing after another; one that dies does nothing more, and a new one takes its place. */
interface Caller {
  id: number;
  token: string;
}

async function play(seed: number): Promise<void> {
  const random = new Random(seed);
  const runtime = new VirtualRuntime(seed);
  const [store, model] = [new MemoryLockStore(runtime), new Model()];
  let ids = 0;
  let highest = 0;
  const newCaller = (): Caller => ({ id: (ids += 1), token: newOwnerToken(runtime) });
  const callers = Array.from({ length: 4 }, newCaller);
  const said: string[] = [`seed ${String(seed)}`];
  const compare = (what: string, actual: unknown, expected: unknown): void => {
    said.push(`${what}: ${String(actual)}`);
    if (actual !== expected) expect(said.join('\n')).toBe(`${what}: ${String(expected)}`);
  };
  const newest = (fencingToken: number): boolean => {
    const isNew = fencingToken > highest;
    highest = Math.max(highest, fencingToken);
    return isNew;
  };

  for (let step = 0; step < STEPS; step += 1) {
    const index = random.between(0, callers.length - 1);
    const caller = callers[index]!;
    const { id, token } = caller;
    const lease = { key: KEY, token, ttlMs: TTL_MS };
    const mode = model.modeOf(id);
    const what = `${String(id)} (${mode ?? 'nothing'})`;
    const action = random.pick(['act', 'act', 'act', 'act', 'time', 'die', 'renew'] as const);
    if (action === 'time') {
      const ms = random.pick([1, 300, 999, 1_001]);
      runtime.block(ms);
      model.nowMs += ms;
    } else if (action === 'die') callers[index] = newCaller();
    else if (action === 'renew') {
      const [outcome] = await store.extend([{ ...lease, fencingToken: 0, validForMs: TTL_MS }]);
      compare(`${what} renews`, outcome?.status, mode === undefined ? 'lost' : 'extended');
      if (mode !== undefined) model.hold(id, mode);
    } else if (mode === undefined) {
      const wanted = random.pick(['exclusive', 'shared', 'shared'] as const);
      caller.token = newOwnerToken(runtime, { mode: wanted });
      const outcome = await store.acquire({ ...lease, token: caller.token });
      const may = model.admits(id, wanted);
      compare(`${what} asks for ${wanted}`, outcome.status, may ? 'granted' : 'held');
      if (outcome.status !== 'granted') continue;
      model.hold(id, wanted);
      const isNew = newest(outcome.fencingToken);
      if (wanted === 'exclusive') compare('its token is the largest', isNew, true);
    } else if (random.chance(0.4)) {
      const outcome = await store.release(lease);
      compare(`${what} releases`, outcome.status, 'released');
      model.end(id);
    }
  }
}

describe('a store in memory, beside a model of a read/write lock,', () => {
  it('answers as that does, whatever callers do, and however many die', async () => {
    for (let seed = 1; seed <= share(500, 10_000); seed += 1) await play(seed);
  }, 300_000);
});
