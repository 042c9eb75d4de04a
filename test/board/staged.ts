import { Global, Module } from '@nestjs/common';
import { LOCK_BOARD_DATA } from 'nestjs-holdfast/board';
import type { LockAdminApi, LockSummary } from '../../lib/admin/lock-admin.types.js';

const instance = {
  id: 'a1',
  application: 'shop',
  host: 'web-1',
  pid: 4711,
  startedAt: new Date(),
  seenAt: new Date(),
  isSilent: true,
};
export const KEY = 'order:42/é?';
export const released: unknown[] = [];
const row: LockSummary = {
  key: KEY,
  state: 'held',
  mode: 'exclusive',
  holders: 1,
  instance,
  since: new Date(),
  waiting: 2,
};

/** What a `LockAdmin` would say of one stuck key. */
const data: LockAdminApi = {
  async *list() {
    yield row;
  },
  describe: async (key) => ({
    key,
    state: 'held',
    mode: 'exclusive',
    fencingToken: 7,
    holders: [
      {
        instance,
        isForeign: false,
        since: new Date(),
        remainingMs: Infinity,
        isSilent: true,
        method: 'OrdersService.pay',
      },
    ],
    line: [{ position: 1, instance, since: new Date(), isSilent: false }],
    silent: [instance],
    audit: [],
  }),
  instances: async () => [instance],
  hot: async () => ({ keys: [{ key: KEY, waitedMs: 4000, waits: 3, refusals: 1 }], silent: [] }),
  release: async (key, why) => {
    released.push({ key, ...why });
    return true;
  },
  releaseInstance: async () => [KEY],
  forgetOnce: async () => true,
  audit: async () => [],
};

@Global()
@Module({ providers: [{ provide: LOCK_BOARD_DATA, useValue: data }], exports: [LOCK_BOARD_DATA] })
export class StagedData {}
