import type { LeaseKeeper } from '../lease/lease-keeper.js';
import type { Caller } from './caller.js';
import type { LockRequests } from './requests.js';

/** How many of the readers that are admitted together ask the store at once. */
const AT_ONCE = 32;

interface LineOfReaders {
  readonly keeper: LeaseKeeper;
  readonly requests: LockRequests;
  readonly waits: (caller: Caller) => boolean;
  /** Returns whether it still waited. */
  readonly takeOut: (caller: Caller) => boolean;
}

/**
 * Admits the callers that waited together with a reader that was admitted. Each gets a lease of its own, for as long as
 * that read phase lasts. Callers that come later join the line again: otherwise readers could keep writers out
 * indefinitely.
 *
 * @param phase the fencing token of the readers that hold it together
 * @returns whether all of them were admitted
 */
export async function letFollow(
  callers: readonly Caller[],
  phase: number,
  line: LineOfReaders,
): Promise<boolean> {
  for (let next = 0; next < callers.length; next += AT_ONCE) {
    const batch = callers.slice(next, next + AT_ONCE).filter(line.waits);
    const joined = await Promise.all(batch.map((caller) => follow(caller, phase, line)));
    if (joined.includes(false)) return false;
  }
  return true;
}

/** Resolves with whether that phase lasts. */
async function follow(caller: Caller, phase: number, line: LineOfReaders): Promise<boolean> {
  const { request } = caller;
  const { keeper, requests, takeOut } = line;
  const outcome = await requests.attempt(request, { joins: phase });
  if (outcome.status !== 'granted') return false;
  const { grant } = outcome;
  if (takeOut(caller)) caller.grant(keeper.adopt(grant, request));
  else keeper.discard(grant, grant.ttlMs);
  return true;
}
