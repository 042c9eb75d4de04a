import { MemoryLockStore } from 'nestjs-holdfast';
import { describeStore } from './suite.js';

describeStore('a memory store', () =>
  Promise.resolve({
    options: { store: new MemoryLockStore() },
    close: () => Promise.resolve(),
  }),
);
