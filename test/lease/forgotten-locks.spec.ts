import { describe, expect, it } from '@jest/globals';
import { LockEngine } from '../../lib/engine/lock-engine.js';
import { ChildScript } from '../support/child-script.js';
import { deferred } from '../support/eventually.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const PROCESS = new URL('forgotten-process.ts', import.meta.url);

interface Seen {
  /** Keys that are held after the garbage was collected. */
  readonly held: readonly string[];
  readonly said: readonly string[];
  readonly lost: readonly string[];
}

const USED = ['by signal', 'by listener', 'remembered', 'section'];
const ALL = ['forgotten', 'forgotten signal', ...USED];

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
  it.each(['default', 'release'])(
    'TR-72 is released, with a warning that names the place, unless its signal is used (%s)',
    async (mode) => {
      const { held, said, lost } = await seenWith(mode);
      expect(held).toEqual(USED);
      expect(lost).toEqual(['forgotten signal: forgotten', 'forgotten: forgotten']);
      expect(said.toSorted()).toEqual([
        expect.stringMatching(
          /^The lock of "forgotten signal", acquired at .*forgotten-process.*, was never released/,
        ),
        expect.stringMatching(
          /^The lock of "forgotten", acquired at .*forgotten-process.*, was never released, and its handle is garbage/,
        ),
      ]);
    },
    30_000,
  );

  it('is released in production where that is asked for', async () => {
    const { held, said } = await seenWith('release', 'production');
    expect(held).toEqual(USED);
    expect(said).toHaveLength(2);
  }, 30_000);

  it.each(['production', 'test'])(
    'is kept in %s, where it may be meant to last',
    async (environment) => {
      const { held, said } = await seenWith('default', environment);
      expect(held).toEqual(ALL);
      expect(said).toEqual([]);
    },
    30_000,
  );

  it('is kept where that is asked for', async () => {
    const { held, said } = await seenWith('keep');
    expect(held).toEqual(ALL);
    expect(said).toEqual([]);
  }, 30_000);
});

/** Records what is watched, in place of the garbage collector. */
class WatchingRuntime extends VirtualRuntime {
  readonly watched: object[] = [];
  /** The timers that keep the process running. */
  readonly keeping = new Set<() => void>();

  /** Ends those that are watched, as if all of them had been collected. */
  collect = (): void => undefined;

  override setTimer(callback: () => void, delayMs: number, where?: 'background'): () => void {
    const cancel = super.setTimer(callback, delayMs);
    if (where !== 'background') this.keeping.add(callback);
    return () => {
      this.keeping.delete(callback);
      cancel();
    };
  }

  watchCollected<T>(onCollected: (note: T) => void) {
    const notes: T[] = [];
    this.collect = () => {
      this.watched.length = 0;
      for (const note of notes.splice(0)) onCollected(note);
    };
    return {
      register: (object: object, note: T) => {
        this.watched.push(object);
        notes.push(note);
      },
    };
  }
}

function watchingEngine() {
  const runtime = new WatchingRuntime();
  const said: string[] = [];
  const log = { warn: (message: string) => void said.push(message), error: () => undefined };
  const options = { store: 'memory', forgottenLocks: 'release', instance: false } as const;
  return { runtime, said, locks: new LockEngine(options, { runtime, log }) };
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

  it('of a section is not watched: the lock ends with the section', async () => {
    const { runtime, locks } = watchingEngine();
    const isOver = deferred();
    const section = locks.run('key', () => isOver.promise);
    await runtime.advance(1_000);
    expect(runtime.watched).toEqual([]);
    isOver.resolve();
    await section;
    await locks.shutdown(0);
  });

  it('leaves no timer behind when its service is closed first', async () => {
    const { runtime, locks } = watchingEngine();
    await (await locks.acquire('short')).release();
    expect(runtime.timers).toBe(1);
    await locks.shutdown(0);
    expect(runtime.timers).toBe(0);
  });

  it('that was released keeps no process running', async () => {
    const { runtime, locks } = watchingEngine();
    const lock = await locks.acquire('short');
    expect(runtime.keeping.size).toBe(1);
    await lock.release();
    expect(runtime.keeping.size).toBe(0);
    await locks.shutdown(0);
  });

  it('TR-72 that was forgotten is warned of with its key and place, and with what to do', async () => {
    const { runtime, said, locks } = watchingEngine();
    await locks.acquire('key');
    await runtime.advance(1_000);
    runtime.collect();
    expect(said).toEqual([
      expect.stringMatching(
        /^The lock of "key", acquired at .*forgotten-locks\.spec\.ts:\d+:\d+\)?, was never released, and its handle is garbage by now: it is released\. Release a lock of acquire\(\) in a finally block, or use run\(\) or "await using"\. A lock that is to be held until the process ends needs a reference that lasts as long\.$/,
      ),
    ]);
    await locks.shutdown(0);
  });

  it('that was forgotten is warned of without its place where that was not recorded', async () => {
    const { runtime, said, locks } = watchingEngine();
    for (let calls = 0; calls < 50; calls += 1) await (await locks.acquire('key')).release();
    await locks.acquire('key');
    await runtime.advance(1_000);
    runtime.collect();
    expect(said).toEqual([
      expect.stringMatching(/^The lock of "key" was never released, and its handle is garbage/),
    ]);
    await locks.shutdown(0);
  });

  it('TR-72 that was forgotten with its signal in use is looked at again, and keeps its lock meanwhile', async () => {
    const { runtime, locks } = watchingEngine();
    const losses: string[] = [];
    locks.on('lost', ({ reason }) => losses.push(reason));
    const lock = await locks.acquire('key');
    const listener = (): void => undefined;
    lock.signal.addEventListener('abort', listener);
    await runtime.advance(1_000);
    runtime.collect();
    expect(runtime.watched).toHaveLength(1);
    lock.signal.removeEventListener('abort', listener);
    runtime.collect();
    expect(runtime.watched).toEqual([lock.signal]);
    expect([lock.isHeld, losses]).toEqual([true, []]);
    const [signal] = runtime.watched as [AbortSignal];
    locks.lose('key');
    expect([signal.aborted, losses]).toEqual([true, ['stolen']]);
    await locks.shutdown(0);
  });

  it('TR-72 of 3,000 locks that are forgotten at once is warned of ten times', async () => {
    const { runtime, said, locks } = watchingEngine();
    for (let n = 0; n < 3_000; n += 1) await locks.acquire(`key:${String(n)}`);
    await runtime.advance(1_000);
    runtime.collect();
    expect(said).toHaveLength(10);
    await locks.shutdown(0);
    expect(said).toHaveLength(11);
    expect(said[10]).toMatch(/^2990 more warnings of the same kind within a minute\./);
  });
});
