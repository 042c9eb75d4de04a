import { RESERVED_TOKENS } from '../../owner-token.js';
import type { LineCall, LineClaim } from '../../lock-store.js';
import { LONGEST_CLAIM_MS } from '../../overtaking.js';
import { isCount } from '../scripts/numbers.js';
import type { ClaimClock } from './claim-clock.js';

/**
 * What scripts send to those in line (`notify_next` and `claim_all` in `scripts/`): `<token> <ms> <main key>`. With a key that was given and
 * can be begun with, the ms are followed by `:<first fencing token>:<server's time in us>:<ms of the claim>`.
 */
const CALL = /^(\S+) (\d+)(?::(\d+):(\d+):(\d+))? (.*)$/s;

/** A message from a script, with the name of the key it is about; `undefined` for what is none. */
export function lineCallOf(
  message: string,
  claims: ClaimClock | undefined,
): { readonly name: string; readonly call: LineCall } | undefined {
  const [, to, inMs, first, sentUs, ttlMs, name] = CALL.exec(message) ?? [];
  if (to === undefined || name === undefined) return undefined;
  const claim = claimOf({ first, sentUs, ttlMs }, claims);
  return { name, call: { to, inMs: Number(inMs), claim } };
}

interface ClaimFields {
  readonly first: string | undefined;
  readonly sentUs: string | undefined;
  readonly ttlMs: string | undefined;
}

function claimOf(fields: ClaimFields, claims: ClaimClock | undefined): LineClaim | undefined {
  const [fencingToken, sentUs, ttlMs] = [fields.first, fields.sentUs, fields.ttlMs].map(Number);
  if (!isCount(fencingToken) || !isCount(sentUs) || !isCount(ttlMs)) return undefined;
  return {
    fencingToken,
    turns: RESERVED_TOKENS,
    ttlMs: Math.min(ttlMs, LONGEST_CLAIM_MS),
    ageMs: claims?.ageAtMostMs(sentUs),
  };
}
