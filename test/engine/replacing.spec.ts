import { expect, it } from '@jest/globals';
import { LockService } from 'nestjs-holdfast';
import { storeOption } from '../../lib/options/location.js';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';

const REPLACE = { onLocked: 'replace' } as const;

it('an older call that is slow does not work after a newer one has worked and ended', async () => {
  const store = new MemoryLockStore();
  const locks = new LockService({ store: storeOption(store) });
  await locks.open();
  const worked: string[] = [];
  const look = store.admin.look.bind(store.admin);
  let looks = 0;
  store.admin.look = async (keys) => {
    const found = await look(keys);
    looks += 1;
    // The older call reads what it saw before the newer one came.
    if (looks === 1) await locks.run('key', REPLACE, () => worked.push('newer'));
    return found;
  };
  const older = locks.run('key', REPLACE, () => worked.push('older'));
  await expect(older).rejects.toMatchObject({ reason: 'replaced', code: 'LOCK_REPLACED' });
  expect(worked).toEqual(['newer']);
  expect(await locks.inspect('key')).toEqual({ held: false });
  await locks.shutdown(0);
});
