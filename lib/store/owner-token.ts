import type { Runtime } from '../time/runtime.js';

/** Tells our own holders from those of other libraries, which will not wake anybody when they release. */
export const MARK = 'holdfast:';

/**
 * How a lock is held: by one alone, or together with others: by any number (`shared`), or by no more than so many (`limit:5`). One of those
 * who share it may be `upgradeable`. Else nobody holds a key in one mode while somebody holds it in another; limits are one mode, whatever
 * their numbers.
 */
export type HoldMode = 'exclusive' | 'shared' | 'upgradeable' | `limit:${number}`;

/** What marks the tokens of one service; 48 random bits. */
export const newMaker = (runtime: Runtime): string =>
  `${Buffer.from(runtime.uuid().slice(-12), 'hex').toString('base64url')}.`;

/** How a token holds, as it says at its end. */
export interface HoldTerms {
  readonly mode?: HoldMode;
  /** Of those that a limit counts. Default 1. */
  readonly places?: number;
}

interface TokenFacts extends HoldTerms {
  readonly maker?: string;
}

/** 122 random bits: nobody can guess it, so nobody else can extend or release. Says how it holds. */
export function newOwnerToken(
  runtime: Runtime,
  { maker = '', mode = 'exclusive', places = 1 }: TokenFacts = {},
): string {
  return withMode(MARK + maker + runtime.uuid() + inPlaces(places), mode);
}

/** Before the mode, which is the same for all who hold a key together, however many places each of them takes. */
const inPlaces = (places: number): string => (places === 1 ? '' : `*${String(places)}`);

const withMode = (token: string, mode: HoldMode): string =>
  mode === 'exclusive' ? token : `${token}:${mode}`;

/** Stands where other tokens name their maker. */
const DETACHED = `${MARK}detached.`;

/** Of a lease that nobody has at the moment. Whoever attaches it proves with a text of this digest that it is to be theirs. */
export const detachedToken = (digest: string, mode: HoldMode, places = 1): string =>
  withMode(DETACHED + digest + inPlaces(places), mode);

export const isDetachedToken = (token: string): boolean => token.startsWith(DETACHED);

/** How a token holds; one of other software holds alone, and so will one who waits to be upgraded. */
export function holdModeOf(token: string): HoldMode {
  const colon = token.indexOf(':', MARK.length);
  const mode = colon === -1 || !isOwnerToken(token) ? 'exclusive' : token.slice(colon + 1);
  return mode === UPGRADE ? 'exclusive' : (mode as HoldMode);
}

/** How many places a token takes of those that a limit counts. `places_of` says the same in Lua. */
export const placesOf = (token: string): number =>
  Number(/^holdfast:[^:*]+\*([1-9]\d*):/.exec(token)?.[1] ?? 1);

/** The limit that a mode states, if it is one. */
export const limitIn = (mode: HoldMode): number | undefined =>
  mode.startsWith('limit:') ? Number(mode.slice('limit:'.length)) : undefined;

/** Whether those who hold a key in these modes may hold it together: all limits are one way to do so. */
export const isAlike = (mode: HoldMode, other: HoldMode): boolean =>
  mode !== 'exclusive' &&
  (mode === other || (limitIn(mode) !== undefined && limitIn(other) !== undefined));
/** Whether one who holds a key in one mode may do what another mode is asked for. */
export const suffices = (held: HoldMode, wanted: HoldMode): boolean =>
  held === 'exclusive' || held === wanted || (held === 'upgradeable' && wanted === 'shared');

/** The token of the same lease in another mode: all of them begin alike. */
export const tokenIn = (mode: HoldMode, token: string): string => withMode(baseOf(token), mode);

/** Names the place in line of an upgradeable lock that waits to be upgraded. */
export const upgradeToken = (token: string): string => `${baseOf(token)}:${UPGRADE}`;

export const isUpgradeToken = (token: string): boolean => token.endsWith(`:${UPGRADE}`);

function baseOf(token: string): string {
  const colon = isOwnerToken(token) ? token.indexOf(':', MARK.length) : -1;
  return colon === -1 ? token : token.slice(0, colon);
}

const UPGRADE = 'upgrade';

/** Stands beside the token of an upgradeable holder, and is the same for all of them. No token that is made has this name. */
export const THE_UPGRADEABLE = `${MARK}-:upgradeable`;

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
  /^holdfast:([^:*]*)/.exec(token)?.[1]?.slice(-8) ?? '';
