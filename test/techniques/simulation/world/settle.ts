/** Node's own end of every callback: runs what `process.nextTick` and promises have waiting, until nothing is left. */
const { _tickCallback: tickCallback } = process as unknown as {
  readonly _tickCallback?: () => void;
};

/**
 * All that promises alone can bring about happens now, before this returns. So a world runs from its first event to its last in one call, no
 * other world comes in between, and an event costs no turn of the event loop. Works within `ownTurn` only.
 */
export function settle(): void {
  tickCallback?.();
}

/** Calls it from the event loop itself: called by a promise, it could not wait for promises. */
export function ownTurn<T>(work: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    setImmediate(() => {
      try {
        resolve(work());
      } catch (error) {
        reject(error);
      }
    });
  });
}

/** @throws where promises cannot be waited for: the world would stand still, and prove nothing */
export function assertSettles(): void {
  let hasSettled = false;
  void Promise.resolve().then(() => {
    hasSettled = true;
  });
  settle();
  if (!hasSettled)
    throw new Error(
      'Play worlds within ownTurn, on a version of Node that has process._tickCallback.',
    );
}
