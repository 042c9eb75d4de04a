/** What each room of `lib/` may import of the others. */
export declare const ROOMS: Readonly<Record<string, readonly string[]>>;
export declare const REDIS_ROOMS: Readonly<Record<string, readonly string[]>>;
