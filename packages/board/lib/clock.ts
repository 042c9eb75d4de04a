/** Where the page has its time from; tests give one of their own. */
export interface Clock {
  now(): { readonly monotonicMs: number; readonly wallMs: number };
}

export const systemClock: Clock = {
  now: () => ({ monotonicMs: performance.now(), wallMs: Date.now() }),
};
