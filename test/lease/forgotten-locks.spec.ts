import { describe, expect, it } from '@jest/globals';
import { LockEngine } from '../../lib/engine/lock-engine.js';
import { ChildScript } from '../support/child-script.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const PROCESS = new URL('forgotten-process.ts', import.meta.url);

interface Seen {
  /** Keys that are held after the garbage was collected. */
  readonly held: readonly string[];
  readonly said: readonly string[];
}

async function seenWith(mode: string, environment = 'development'): Promise<Seen> {
  const { NODE_ENV } = process.env;
  try {
    process.env.NODE_ENV = environment;
    const child = new ChildScript(PROCESS, [mode], ['--expose-gc']);
    return JSON.parse(await child.output) as Seen;
  } finally {
    process.env.NODE_ENV = NODE_ENV;
  }
}

describe('a lock whose handle is collected while it is held', () => {
  it.each(['default', 'release', 'sample'])(
    'is released, with a warning that names the place (%s)',
    async (mode) => {
      const { held, said } = await seenWith(mode);
      expect(held).toEqual(['remembered', 'section']);
      expect(said).toEqual([
        expect.stringMatching(
          /^The lock of "forgotten", acquired at .*forgotten-process.*, was never released, and its handle is garbage/,
        ),
      ]);
    },
    30_000,
  );

  it('is released in production where that is asked for', async () => {
    const { held, said } = await seenWith('sample', 'production');
    expect(held).toEqual(['remembered', 'section']);
    expect(said).toHaveLength(1);
  }, 30_000);

  it.each(['production', 'test'])(
    'is kept in %s, where it may be meant to last',
    async (environment) => {
      const { held, said } = await seenWith('default', environment);
      expect(held).toEqual(['forgotten', 'remembered', 'section']);
      expect(said).toEqual([]);
    },
    30_000,
  );

  it('is kept where that is asked for', async () => {
    const { held, said } = await seenWith('keep');
    expect(held).toEqual(['forgotten', 'remembered', 'section']);
    expect(said).toEqual([]);
  }, 30_000);
});

/** Records what is watched, in place of the garbage collector. */
class WatchingRuntime extends VirtualRuntime {
  readonly watched: object[] = [];

  watchCollected() {
    return { register: (object: object) => void this.watched.push(object) };
  }
}

function watchingEngine() {
  const runtime = new WatchingRuntime();
  const log = { warn: () => undefined, error: () => undefined };
  const options = { store: 'memory', forgottenLocks: 'release', instance: false } as const;
  return { runtime, locks: new LockEngine(options, { runtime, log }) };
}

describe('a handle', () => {
  it('is watched once its lock has been held for a second, and not before', async () => {
    const { runtime, locks } = watchingEngine();
    await (await locks.acquire('short')).release();
    const first = await locks.acquire('first');
    await runtime.advance(999);
    expect(runtime.watched).toEqual([]);
    await runtime.advance(1);
    expect(runtime.watched).toEqual([first]);
    const second = await locks.acquire('second');
    await runtime.advance(1_000);
    expect(runtime.watched).toEqual([first, second]);
    await Promise.all([first.release(), second.release()]);
    await locks.shutdown(0);
    expect(runtime.timers).toBe(0);
  });

  it('leaves no timer behind when its service is closed first', async () => {
    const { runtime, locks } = watchingEngine();
    await (await locks.acquire('short')).release();
    expect(runtime.timers).toBe(1);
    await locks.shutdown(0);
    expect(runtime.timers).toBe(0);
  });
});
