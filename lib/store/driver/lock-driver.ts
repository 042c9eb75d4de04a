/**
 * Keeps exclusive locks in a database of yours: three operations, each on one key and in one atomic step. Give it to
 * `LockModule.forRoot({ store: driver })`.
 *
 * - **A failure is thrown**: whatever an operation throws, or rejects with, counts as an outage. Holdfast cannot know then
 *   whether the operation was carried out, and cleans up. Return `'held'` or `'lost'` only if the database reports it.
 * - **Time** is that of the database. A lease whose `ttlMs` are over holds nothing, whether or not its record still exists.
 * - **Tokens** are unguessable texts of at most 100 ASCII characters, new for every attempt to acquire. Compare them with
 *   case. Keys are texts of up to 1,024 characters behind the `keyPrefix`.
 *
 * `driverSuite` of `nestjs-holdfast/testing` checks a driver. Its locks wait by asking again, and have no fencing tokens:
 * https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/compatibility.md#locks-in-another-database
 */
export interface LockDriver {
  /**
   * Takes the key for `token` and for `ttlMs` from now, unless another token holds it. A token that already holds the key
   * acquires it again, because clients of databases may send a request twice. `remainingMs` is what is left of the lease
   * that is in the way, for the `Retry-After` of refused calls; the most that it can be if it is not known.
   */
  acquire(
    key: string,
    token: string,
    ttlMs: number,
  ): Promise<
    { readonly status: 'acquired' } | { readonly status: 'held'; readonly remainingMs: number }
  >;
  /** Makes the lease last for `ttlMs` from now if `token` holds the key. Otherwise it changes nothing. */
  extend(
    key: string,
    token: string,
    ttlMs: number,
  ): Promise<{ readonly status: 'extended' } | { readonly status: 'lost' }>;
  /** Frees the key if `token` holds it. Otherwise it changes nothing. */
  release(
    key: string,
    token: string,
  ): Promise<{ readonly status: 'released' } | { readonly status: 'not-held' }>;
}
