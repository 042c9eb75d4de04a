import { randomUUID } from 'node:crypto';
import { systemClock, type CancelTimer, type Clock } from './clock.js';

/** What objects are watched by. */
export interface CollectedWatch<T> {
  /** @param note what the callback gets for the object; must not refer to it */
  register(object: WeakKey, note: T): void;
}

/**
 * Everything that differs from one run to the next: time, timers, chance, ids. It is one object, so that a simulation
 * decides all of them. ESLint keeps the globals out of the rest of the library.
 */
export interface Runtime extends Clock {
  /** Calls back when what has arrived by now has been read: Node reads its sockets between its timers and its immediates. */
  afterInput(callback: () => void): CancelTimer;
  /** From 0 to 1, without 1. */
  random(): number;
  /**
   * Calls back some time after a watched object was collected as garbage. None where nothing may depend on the garbage collector, as in a
   * simulation.
   */
  watchCollected?<T>(onCollected: (note: T) => void): CollectedWatch<T>;
  /** 122 random bits that cannot be guessed, as a UUID. */
  uuid(): string;
}

export const systemRuntime: Runtime = {
  ...systemClock,
  afterInput(callback) {
    const immediate = setImmediate(callback);
    return () => {
      clearImmediate(immediate);
    };
  },
  watchCollected: (onCollected) => new FinalizationRegistry(onCollected),
  random: () => Math.random(),
  uuid: () => randomUUID(),
};
