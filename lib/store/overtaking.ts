/**
 * A caller of several keys that cannot have all of them yet. Others may have those of its keys that are free, for so long after it came.
 * From then on they are kept for it, or a stream of callers of single keys could keep it waiting indefinitely. In ms.
 */
export const PATIENCE_MS = 1_000;

/**
 * Its keys are not kept indefinitely: the holder that it waits for may itself need one of them, in a section inside another one. After
 * a window of this length others may overtake it. The next window is twice as long, up to the longest. In ms.
 */
export const FIRST_KEPT_MS = 1_000;
export const LONGEST_KEPT_MS = 4_000;

/** For so long others may overtake it between two windows. In ms. */
export const OPEN_MS = 250;

/**
 * At most how long a key waits for the caller in line that it was given to, in ms: what a frozen process costs the
 * others.
 */
export const LONGEST_CLAIM_MS = 1_000;

/**
 * For how many ms a caller that came `ageMs` ago still keeps its free keys from others; 0 if it does not. `KEEPS_FOR`
 * is the same in Lua.
 */
export function keepsForMs(ageMs: number): number {
  let [sinceMs, windowMs] = [ageMs - PATIENCE_MS, FIRST_KEPT_MS];
  while (sinceMs >= windowMs && windowMs < LONGEST_KEPT_MS) {
    sinceMs -= windowMs + OPEN_MS;
    windowMs = Math.min(2 * windowMs, LONGEST_KEPT_MS);
  }
  // Not window by window: a place may be very old, or have a ticket that makes it look so.
  if (sinceMs >= windowMs) sinceMs %= windowMs + OPEN_MS;
  return sinceMs >= 0 && sinceMs < windowMs ? Math.ceil(windowMs - sinceMs) : 0;
}
