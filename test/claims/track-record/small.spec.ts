import { beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { getEventListeners } from 'node:events';
import { LockDeadlockError, LockService } from 'nestjs-holdfast';
import { MemoryLockStore } from '../../../lib/store/memory/memory-lock-store.js';
import { Section } from '../../../lib/sections/section.js';
import { WaitsFor } from '../../../lib/sections/waits-for.js';
import { storeOption } from '../../../lib/options/location.js';
import { stubLock } from '../../sections/stub-lock.js';

/** What a signal keeps of others: those that abort with it, alive or not, and listeners. */
function keptBy(signal: AbortSignal): number {
  const symbol = Object.getOwnPropertySymbols(signal).find(
    ({ description }) => description === 'kDependantSignals',
  );
  const dependent = symbol && (signal as unknown as Record<symbol, Set<unknown>>)[symbol];
  return (dependent?.size ?? 0) + getEventListeners(signal, 'abort').length;
}

beforeAll(() => {
  Logger.overrideLogger(false);
});

describe('signals that outlive the calls they are given to', () => {
  it('HF-20 keep nothing of nested calls that waited for their turn', async () => {
    const locks = new LockService({ store: storeOption(new MemoryLockStore()) });
    const { signal } = new AbortController();
    await locks.run('key', () =>
      Promise.all(
        Array.from({ length: 20 }, () => locks.run('key', { wait: '5s', signal }, () => undefined)),
      ),
    );
    expect(keptBy(signal)).toBe(0);
    await locks.shutdown(0);
  });

  it('HF-20 end the wait of a nested call for its turn, with their reason', async () => {
    const locks = new LockService({ store: storeOption(new MemoryLockStore()) });
    const [during, before] = [new AbortController(), new AbortController()];
    const [tooLate, enough] = [new Error('too late'), new Error('enough')];
    before.abort(tooLate);
    const work = (): string => 'done';
    await locks.run('key', async () => {
      let end = (): void => undefined;
      const first = locks.run('key', () => new Promise<void>((resolve) => (end = resolve)));
      const waits = [during, before].map(({ signal }) =>
        locks.run('key', { wait: '5s', signal }, work).catch((error: unknown) => error),
      );
      await new Promise(setImmediate);
      during.abort(enough);
      expect(await Promise.all(waits)).toEqual([enough, tooLate]);
      end();
      await first;
    });
    await locks.shutdown(0);
  });

  it('HF-20 keep nothing of runOnce, and end its work', async () => {
    const locks = new LockService({ store: storeOption(new MemoryLockStore()) });
    const [controller, aborted] = [new AbortController(), new AbortController()];
    const { signal } = controller;
    for (let index = 0; index < 20; index += 1) {
      await locks.runOnce(`job:${String(index)}`, { signal }, () => undefined);
    }
    await expect(
      locks.runOnce('job', { signal }, () => Promise.reject(new Error('no'))),
    ).rejects.toThrow('no');
    expect(keptBy(signal)).toBe(0);

    const reason = new Error('stop');
    const seen = await locks.runOnce('last', { signal: aborted.signal }, (attempt) => {
      expect(attempt.signal.aborted).toBe(false);
      aborted.abort(reason);
      return attempt.signal.reason as unknown;
    });
    expect(seen).toMatchObject({ outcome: 'completed', value: reason });
    await locks.runOnce('lost', { signal }, (attempt) => {
      locks.lose('lost');
      expect(attempt.signal.aborted).toBe(true);
    });
    await locks.shutdown(0);
    expect(keptBy(signal)).toBe(0);
  });

  it('HF-20 are given one listener by the nested calls that wait with them', async () => {
    const locks = new LockService({ store: storeOption(new MemoryLockStore()) });
    const { signal } = new AbortController();
    await locks.run('key', async () => {
      let end = (): void => undefined;
      const first = locks.run('key', () => new Promise<void>((resolve) => (end = resolve)));
      const calls = Array.from({ length: 20 }, () => locks.run('key', { signal }, () => undefined));
      await new Promise(setImmediate);
      expect(getEventListeners(signal, 'abort')).toHaveLength(1);
      end();
      await Promise.all([first, ...calls]);
    });
    expect(keptBy(signal)).toBe(0);
    await locks.shutdown(0);
  });
});

describe('circles of calls', () => {
  it('HF-20 are found over a chain of 50,000 waits', () => {
    const length = 50_000;
    const owner = {};
    const waitsFor = new WaitsFor();
    const nameOf = (index: number): string => `key:${String(index)}`;
    const wait = (index: number) => ({
      owner,
      keys: [nameOf((index + 1) % length)],
      mode: 'exclusive' as const,
      sections: [new Section(owner, stubLock({ keys: [nameOf(index)] }), undefined)],
    });
    for (let index = 0; index < length - 1; index += 1) waitsFor.begin(wait(index));
    let error: unknown;
    try {
      waitsFor.begin(wait(length - 1));
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(LockDeadlockError);
    const { circle, detail } = error as LockDeadlockError;
    expect(circle).toHaveLength(length);
    expect(circle.slice(0, 2)).toEqual(['key:0', 'key:1']);
    expect(circle.at(-1)).toBe(nameOf(length - 1));
    expect(detail.length).toBeLessThan(2_000);
  });

  it('HF-20 sections may stand in each other 50,000 deep', () => {
    const owner = {};
    let section = new Section(owner, stubLock({ keys: ['outermost'] }), undefined);
    for (let depth = 1; depth < 50_000; depth += 1) {
      section = new Section(owner, stubLock({ keys: ['key'] }), section);
    }
    expect(section.enclosing(owner)).toHaveLength(50_000);
    expect(section.enclosing({})).toHaveLength(0);
  });
});
