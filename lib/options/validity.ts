/**
 * How much of a TTL may be relied on: clocks of client and server run at different speeds. The fraction is an option, the
 * 2 ms are what Redis' expiry resolution and small TTLs need (redis.io, "Distributed locks with Redis").
 */
export const validityMs = (ttlMs: number, clockDrift: number): number =>
  ttlMs - ttlMs * clockDrift - 2;
