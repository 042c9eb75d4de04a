/** Where the program has its time from; tests give one of their own. */
export interface Runtime {
  now(): { readonly monotonicMs: number; readonly wallMs: number };
  /** Calls back once. Returns what cancels it. */
  setTimer(callback: () => void, delayMs: number): () => void;
}

export const systemRuntime: Runtime = {
  now: () => ({ monotonicMs: performance.now(), wallMs: Date.now() }),
  setTimer(callback, delayMs) {
    const timer = setTimeout(callback, delayMs);
    return () => {
      clearTimeout(timer);
    };
  },
};
