/**
 * Node's environment, and after each spec nothing is left of its `AsyncLocalStorage`s. Node 20 copies the value of each one that was ever
 * used to every promise, and a worker of jest loads the library, and Nest, anew for each spec.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { TestEnvironment } from 'jest-environment-node';

const used = new Set();

// A worker of jest ends by itself. With a heap of a gigabyte Node takes longer to tidy up than jest waits; `exit` leaves that to the system.
if (process.send !== undefined) process.once('beforeExit', () => process.exit());

for (const name of ['run', 'enterWith']) {
  const original = AsyncLocalStorage.prototype[name];
  AsyncLocalStorage.prototype[name] = function (...args) {
    used.add(this);
    return Reflect.apply(original, this, args);
  };
}

export default class Environment extends TestEnvironment {
  async teardown() {
    for (const storage of used) storage.disable();
    used.clear();
    await super.teardown();
  }
}
