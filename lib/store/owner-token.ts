import { createHash } from 'node:crypto';
import type { Runtime } from '../time/runtime.js';

/** Distinguishes our own holders from those of other libraries, which wake no waiter when they release. */
export const MARK = 'holdfast:';

/**
 * How a lock is held: exclusively, or together with others, by any number (`shared`) or up to a limit (`limit:5`). A
 * key is held in one mode only; limits are one mode, whatever their numbers.
 */
export type HoldMode = 'exclusive' | 'shared' | `limit:${number}`;

/** What marks the tokens of one service; 48 random bits. */
export const newMaker = (runtime: Runtime): string => {
  const bits = Buffer.from(runtime.uuid().slice(-12), 'hex').toString('base64url');
  // Operators give it to the command line, which takes a first `-` for an option.
  return `${bits.replace(/^-/, '_')}.`;
};

/** The mode and places of a token, which are its end. */
export interface HoldTerms {
  readonly mode?: HoldMode;
  /** The number of places of a limit. Default 1. */
  readonly places?: number;
}

interface TokenFacts extends HoldTerms {
  readonly maker?: string;
}

/** 122 random bits. They cannot be guessed, so no other client can extend or release. Ends with its mode. */
export function newOwnerToken(
  runtime: Runtime,
  { maker = '', mode = 'exclusive', places = 1 }: TokenFacts = {},
): string {
  return withMode(MARK + maker + runtime.uuid() + inPlaces(places), mode);
}

/** The places come before the mode, which is the same for all that hold a key together. */
const inPlaces = (places: number): string => (places === 1 ? '' : `*${String(places)}`);

const withMode = (token: string, mode: HoldMode): string =>
  mode === 'exclusive' ? token : `${token}:${mode}`;

/** Stands where other tokens name their maker. */
const DETACHED = `${MARK}detached.`;

/** The token of a lease without a holder. A caller that attaches it proves its right with a text of this digest. */
export const detachedToken = (digest: string, mode: HoldMode, places = 1): string =>
  withMode(DETACHED + digest + inPlaces(places), mode);

export const isDetachedToken = (token: string): boolean => token.startsWith(DETACHED);

/** The mode of a token. A token of other software is exclusive. */
export function holdModeOf(token: string): HoldMode {
  const colon = token.indexOf(':', MARK.length);
  return colon === -1 || !isOwnerToken(token) ? 'exclusive' : (token.slice(colon + 1) as HoldMode);
}

/** How many places of a limit a token takes. `places_of` is the same in Lua. */
export const placesOf = (token: string): number =>
  Number(/^holdfast:[^:*]+\*([1-9]\d*):/.exec(token)?.[1] ?? 1);

/** The limit that a mode states, if it is one. */
export const limitIn = (mode: HoldMode): number | undefined =>
  mode.startsWith('limit:') ? Number(mode.slice('limit:'.length)) : undefined;

/** Whether locks of these modes may hold a key together: all limits are one mode. */
export const isAlike = (mode: HoldMode, other: HoldMode): boolean =>
  mode !== 'exclusive' &&
  (mode === other || (limitIn(mode) !== undefined && limitIn(other) !== undefined));

/** Whether a token was made for this maker. */
export const isOwnToken = (value: string, maker: string): boolean => value.startsWith(MARK + maker);

export const isOwnerToken = (value: string): boolean => value.startsWith(MARK);

/** The maker of a token, if the token names it. */
export const makerIn = (token: string): string | undefined =>
  /^holdfast:([\w-]+)\./.exec(token)?.[1];

/** Proves that its sender knows the owner token, without disclosing the token. */
export const digestOf = (token: string): string => createHash('sha256').update(token).digest('hex');

/** Names a lease to operators. It is too short to prove anything. */
export const leaseIdOf = (token: string): string => digestOf(token).slice(0, 12);

/** What messages call the place of a token: 32 of its 122 random bits, which prove nothing. Scripts make the same (`places.lua`). */
export const tailOf = (token: string): string =>
  /^holdfast:([^:*]*)/.exec(token)?.[1]?.slice(-8) ?? '';
