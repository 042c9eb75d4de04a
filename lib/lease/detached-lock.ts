import { createHash } from 'node:crypto';
import { LockConfigurationError, LockKeyError } from '../errors.js';
import type { LeaseReference } from '../store/lock-store.js';
import { detachedToken, type HoldMode } from '../store/owner-token.js';
import type { Runtime } from '../time/runtime.js';
import type { Lease } from './lease.js';

/** A lock without a holder, as described by the text that `detach` returns. */
export interface DetachedLock extends LeaseReference {
  /** Where the locks of its service are kept, as far as another service can compare that. */
  readonly place: string;
  readonly mode: HoldMode;
  /** The number of places of a limit. Missing for one: versions before places can read such a text. */
  readonly places?: number;
  readonly fencingToken: number;
  readonly ttlMs: number;
  readonly autoExtend: boolean;
  /** What is left of it. */
  readonly minHoldMs: number;
  readonly release: 'when-done' | 'on-expiry';
  /** For so long after it was detached the keys stay taken. */
  readonly keptForMs: number;
  /** When that is over, by the wall clock of the machine that detached it: clocks differ. */
  readonly untilMs: number;
}

type Facts = Omit<DetachedLock, 'token'> & {
  /** Makes the text unguessable. */
  readonly nonce: string;
};

/** The first part of each text, and the version of what follows. */
const MARK = 'holdfast-lock-1';

interface Departure {
  /** For so long the keys stay taken. */
  readonly ttlMs: number;
  readonly place: string;
  readonly runtime: Runtime;
}

/**
 * Makes the text that a later `attach` is given, and the owner token under which the lease waits. The token is the digest
 * of the whole content of the text. After a change of the text, of the fencing token for instance, its digest is the
 * token of no key. So the store itself checks the text, and the text needs no other secret.
 */
export function toDetached(
  lease: Lease,
  { ttlMs, place, runtime }: Departure,
): { readonly text: string; readonly token: string } {
  const { keys, mode, fencingToken, isRenewed } = lease;
  const { places, release } = lease.request.options;
  const minHoldMs = Math.ceil(lease.minHoldLeftMs);
  refuseBelowMinHold(ttlMs, minHoldMs);
  const facts: Facts = {
    ...{ place, keys, mode, fencingToken },
    ...(places > 1 && { places }),
    ...{ ttlMs: lease.ttlMs, autoExtend: isRenewed, minHoldMs, release },
    ...{ keptForMs: ttlMs, untilMs: Math.ceil(runtime.now().wallMs + ttlMs) },
    nonce: runtime.uuid(),
  };
  const content = Buffer.from(JSON.stringify(facts)).toString('base64url');
  const digest = digestOf(content);
  return { text: `${MARK}.${content}.${digest}`, token: detachedToken(digest, mode, facts.places) };
}

/** @throws LockKeyError for a text that `detach` did not return, or that is no longer as it was */
export function readDetached(text: unknown): DetachedLock {
  if (typeof text !== 'string' || !text.startsWith(`${MARK}.`))
    throw refused(
      `it is none that lock.detach() returns${typeof text === 'string' ? '' : `, but a value of type ${typeof text}`}`,
    );
  const [, content, digest, ...more] = text.split('.');
  if (content === undefined || digest !== digestOf(content) || more.length > 0)
    throw refused('it was changed, or cut off, on its way');
  const facts = factsIn(content);
  // Only who makes up a digest of his own gets here.
  if (!isWhole(facts)) throw refused('what it says is not what lock.detach() writes');
  return { ...facts, token: detachedToken(digest, facts.mode, facts.places) };
}

const digestOf = (content: string): string =>
  createHash('sha256').update(content).digest('base64url');

function factsIn(content: string): unknown {
  try {
    return JSON.parse(Buffer.from(content, 'base64url').toString());
  } catch {
    return undefined;
  }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

const isWhole = (given: unknown): given is Omit<DetachedLock, 'token'> => {
  const facts = Object(given) as Readonly<Record<keyof Facts, unknown>>;
  const { keys, place, mode, places = 1, autoExtend, release } = facts;
  const counts = ['fencingToken', 'ttlMs', 'minHoldMs', 'keptForMs'] as const;
  return (
    Array.isArray(keys) &&
    keys.length > 0 &&
    keys.every((key) => typeof key === 'string') &&
    typeof place === 'string' &&
    typeof mode === 'string' &&
    /^(exclusive|shared|limit:[1-9]\d*)$/.test(mode) &&
    isCount(places) &&
    Number(places) > 0 &&
    typeof autoExtend === 'boolean' &&
    (release === 'when-done' || release === 'on-expiry') &&
    counts.every((name) => isCount(facts[name])) &&
    typeof facts.untilMs === 'number'
  );
};

const refused = (why: string): LockKeyError =>
  new LockKeyError({
    problem: `The text that was given to attach() is not the text of a detached lock: ${why}. Give what lock.detach() returned, unchanged.`,
  });

function refuseBelowMinHold(ttlMs: number, minHoldMs: number): void {
  if (ttlMs >= minHoldMs) return;
  throw new LockConfigurationError(
    `detach({ ttl: ${String(ttlMs)} }) is shorter than what is left of the lock's "minHold", ${String(minHoldMs)} ms: if no process attaches it, the ` +
      'keys must stay taken until then. Give a longer "ttl".',
  );
}
