/**
 * Browsers do not follow a call through its promises. The explorer opens no sections (`run`, `@WithLock`), whose nesting is all that the
 * library needs this for: outside of a section there is nothing to find.
 */
export class AsyncLocalStorage {
  getStore() {
    return undefined;
  }

  run(_store, work, ...args) {
    return work(...args);
  }
}

export class AsyncResource {
  runInAsyncScope(work, self, ...args) {
    return work.apply(self, args);
  }

  static bind(work) {
    return work;
  }
}
