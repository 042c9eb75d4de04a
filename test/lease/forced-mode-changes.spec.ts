import { describe, expect, it, jest } from '@jest/globals';
import { LockService, MemoryLockStore } from 'nestjs-holdfast';

describe('a lock whose mode changes while it is released by force', () => {
  it.each(['upgrade', 'downgrade'] as const)('by %s() is lost at once', async (change) => {
    const store = new MemoryLockStore();
    const locks = new LockService({ store });
    const lock = await locks.acquire('key', { mode: 'upgradeable' });
    const look = store.admin.look.bind(store.admin);
    jest.spyOn(store.admin, 'look').mockImplementation(async (keys) => {
      const found = await look(keys);
      await lock[change]();
      return found;
    });
    const { signal } = lock;
    expect(await locks.forceRelease('key', { reason: 'stuck' })).toBe(true);
    expect(signal.reason).toMatchObject({ reason: 'force-released' });
    expect(lock.isHeld).toBe(false);
    await locks.shutdown(0);
  });
});
