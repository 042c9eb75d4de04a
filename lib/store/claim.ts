/**
 * At most how long a key waits for the caller in line that it was given to, in ms: what a frozen process costs the
 * others.
 */
export const LONGEST_CLAIM_MS = 1_000;

const BRIEF_MS = 2_000;
const BRIEF_MS_A_SLOT = 50;

/**
 * The lease of keys in one slot of a Cluster while keys in later slots are asked for, in ms. A process that freezes in
 * between costs the others so much. With many slots, the last of them is asked late.
 */
export const briefMs = (slots: number): number => Math.max(BRIEF_MS, BRIEF_MS_A_SLOT * slots);
