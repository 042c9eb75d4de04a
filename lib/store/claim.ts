/**
 * At most how long a key waits for the caller in line that it was given to, in ms: what a frozen process costs the
 * others.
 */
export const LONGEST_CLAIM_MS = 1_000;

/**
 * The lease of a key in one slot of a Cluster while keys in later slots are asked for, in ms. A process that freezes in
 * between costs the others so much.
 */
export const BRIEF_MS = 2_000;
