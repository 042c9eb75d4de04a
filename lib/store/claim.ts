/**
 * At most how long a key waits for the caller in line that it was given to, in ms: what a frozen process costs the
 * others.
 */
export const LONGEST_CLAIM_MS = 1_000;
