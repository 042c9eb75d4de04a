/** What each room of `lib/` may import of the others. */
export declare const ROOMS: Readonly<Record<string, readonly string[]>>;
/** Which entries of the library and of other packages each package imports. */
export declare const PACKAGES: Readonly<Record<string, readonly string[]>>;
export declare const REDIS_ROOMS: Readonly<Record<string, readonly string[]>>;
