/**
 * At most how long a key waits for the caller in line that it was given to, in ms: what a frozen process costs the
 * others.
 */
export const LONGEST_CLAIM_MS = 1_000;

const BRIEF_MS = 2_000;
const BRIEF_MS_A_KEY = 50;

/**
 * The lease of a key while other keys of the same call are asked for, in ms. A process that freezes in between costs the
 * others so much. With many keys, the last of them is asked late.
 */
export const briefMs = (keys: number): number => Math.max(BRIEF_MS, BRIEF_MS_A_KEY * keys);
