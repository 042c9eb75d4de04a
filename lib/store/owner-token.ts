import type { Runtime } from '../time/runtime.js';

/** Tells our own holders from those of other libraries, which will not wake anybody when they release. */
export const MARK = 'holdfast:';

/**
 * How a lock is held: by one alone, or together with others: by any number (`shared`), or by no more than so many (`limit:5`). Nobody
 * holds a key in one mode while somebody holds it in another.
 */
export type HoldMode = 'exclusive' | 'shared' | `limit:${number}`;

/** What marks the tokens of one service; 48 random bits. */
export const newMaker = (runtime: Runtime): string =>
  `${Buffer.from(runtime.uuid().slice(-12), 'hex').toString('base64url')}.`;

interface TokenFacts {
  readonly maker?: string;
  readonly mode?: HoldMode;
}

/** 122 random bits: nobody can guess it, so nobody else can extend or release. Says how it holds. */
export function newOwnerToken(
  runtime: Runtime,
  { maker = '', mode = 'exclusive' }: TokenFacts = {},
): string {
  return withMode(MARK + maker + runtime.uuid(), mode);
}

const withMode = (token: string, mode: HoldMode): string =>
  mode === 'exclusive' ? token : `${token}:${mode}`;

/** Stands where other tokens name their maker. */
const DETACHED = `${MARK}detached.`;

/** Of a lease that nobody has at the moment. Whoever attaches it proves with a text of this digest that it is to be theirs. */
export const detachedToken = (digest: string, mode: HoldMode): string =>
  withMode(DETACHED + digest, mode);

export const isDetachedToken = (token: string): boolean => token.startsWith(DETACHED);

/** How a token holds; one of other software holds alone. */
export function holdModeOf(token: string): HoldMode {
  const colon = token.indexOf(':', MARK.length);
  return colon === -1 || !isOwnerToken(token) ? 'exclusive' : (token.slice(colon + 1) as HoldMode);
}

/** So many fencing tokens are reserved with a lease under which turns are taken. Each is 1 µs of the server's clock. */
export const RESERVED_TOKENS = 1_024;

/**
 * How many fencing tokens are reserved with a lease, for turns under it. Under a lock that several hold together turns have the token of
 * all: tokens that are reserved and never used would run ahead of the server's clock.
 */
export const turnsOf = (token: string, turns: number): number =>
  holdModeOf(token) === 'exclusive' ? turns : 1;

/** Whether a token was made for this maker. */
export const isOwnToken = (value: string, maker: string): boolean => value.startsWith(MARK + maker);

export const isOwnerToken = (value: string): boolean => value.startsWith(MARK);

/** Who made a token, where it says so. */
export const makerIn = (token: string): string | undefined =>
  /^holdfast:([\w-]+)\./.exec(token)?.[1];

/** What is told of a token: enough to tell it from others, and nothing that could be used. */
export const tailOf = (token: string): string =>
  /^holdfast:([^:]*)/.exec(token)?.[1]?.slice(-8) ?? '';
