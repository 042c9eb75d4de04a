import {
  LockConfigurationError,
  LockNotAttachedError,
  LockServiceClosedError,
  LockStoreUnavailableError,
} from '../errors.js';
import { checkKey } from '../key/index.js';
import { withStackOf, type CallSite } from '../lease/call-site.js';
import { readDetached, type DetachedLock } from '../lease/detached-lock.js';
import type { Lease } from '../lease/lease.js';
import { LockHandle } from '../lease/lock-handle.js';
import { LockRequest } from '../lease/lock-request.js';
import { refuseLongMinHold, type ResolvedAcquireOptions } from '../options/acquire-options.js';
import { TRAVELS, type AttachOptions } from '../options/detach-options.js';
import { needsOneRedis } from '../options/one-redis.js';
import { placeOf } from '../options/location.js';
import { ttlWithin, type ResolvedOptions } from '../options/resolve-options.js';
import { resolve } from '../options/schema.js';
import { tooLate } from '../queue/requests.js';
import type { Unavailable } from '../store/lock-store.js';
import type { Components } from './compose.js';

/** Takes over a lock that was detached: the handle of `attach`. */
export async function attach(
  text: string,
  given: AttachOptions,
  parts: Components,
  site: CallSite | undefined,
): Promise<LockHandle> {
  const { keeper, queue, recorder, forgotten, present } = parts;
  try {
    needsOneRedis('attach()', parts.options.location);
    const detached = readDetached(text);
    const options = optionsFor(detached, given, parts.options);
    const request = new LockRequest(detached.keys, options, { site });
    if (queue.isClosed) throw new LockServiceClosedError(detached.keys);
    const lease = await queue.requests.pending.add(takeOver(detached, request, parts));
    const lock = new LockHandle(lease, keeper);
    recorder.emit('attached', lease, {});
    recorder.holdBegan(lease);
    // The event loop may have been blocked since the store answered.
    lock.assertHeld();
    return forgotten.isWatching ? forgotten.watch(lock) : lock;
  } catch (error) {
    throw present(withStackOf(error, site));
  }
}

/** @throws LockKeyError, LockConfigurationError */
function optionsFor(
  { keys, place, minHoldMs, release, mode, places = 1, ...before }: DetachedLock,
  given: AttachOptions,
  options: ResolvedOptions,
): ResolvedAcquireOptions {
  keys.forEach(checkKey);
  const here = placeOf(options.location, options.keyPrefix);
  if (place !== here)
    throw new LockConfigurationError(
      `The lock that was given to attach() was detached where locks are kept in another place (${place}) than here (${here}). Attach it with a ` +
        'service that has the options of the one that acquired it.',
    );
  const {
    ttlMs = before.ttlMs,
    autoExtend = before.autoExtend,
    maxHoldMs = Infinity,
  } = resolve(TRAVELS.attach.options, given);
  refuseLongMinHold(minHoldMs, ttlMs);
  ttlWithin(ttlMs, options.restartGuard);
  const held = { ttlMs, autoExtend, maxHoldMs, minHoldMs, release, mode, places };
  return { ...held, waitMs: 0, replaceWaitMs: undefined, reentrant: false, signal: undefined };
}

/** @throws LockNotAttachedError, LockStoreUnavailableError, LockServiceClosedError */
async function takeOver(
  detached: DetachedLock,
  request: LockRequest,
  { store, keeper, scheduler, recorder, queue }: Components,
): Promise<Lease> {
  const { requests } = queue;
  const { keys, fencingToken, untilMs, keptForMs, minHoldMs } = detached;
  const { ttlMs } = request.options;
  const token = requests.newToken(request.options);
  const travels = { keys, lastToken: fencingToken };
  /**
   * The lock may be ours while no caller has it. Puts it back under its old token, so that another try with the text
   * finds it. This request arrives after the one without a reply, over the same connection. If that one is carried out
   * even later, the clean-up frees the keys.
   */
  const putBack = (): void => {
    // What is left of its time. If that was over already when we asked, the clocks differ, or there is nothing to put back.
    const leftMs =
      sentAt.wallMs < untilMs ? Math.ceil(untilMs - scheduler.runtime.now().wallMs) : ttlMs;
    // What is left of minHold counts from the attach, which may have been carried out.
    const backForMs = Math.max(1, minHoldMs, Math.min(keptForMs, leftMs));
    const back = { ...travels, token, to: detached.token, ttlMs: backForMs };
    const returned = store.transfer(back).then(() => {
      keeper.discard({ keys, token }, ttlMs);
    });
    void requests.pending.add(returned);
  };
  const unavailable = ({ nodes }: Unavailable): LockStoreUnavailableError => {
    const operation = 'attach';
    recorder.emit('unavailable', request, { operation, nodes });
    return new LockStoreUnavailableError({ operation, keys, nodes });
  };
  const sentAt = scheduler.runtime.now();
  const outcome = await store.transfer({
    ...travels,
    ...{ token: detached.token, to: token, ttlMs, grants: true },
  });
  const now = scheduler.runtime.now();
  if (outcome.status === 'lost') {
    // The store does not know what was before a key was free.
    const wasFree = now.wallMs >= untilMs ? 'expired' : 'released-elsewhere';
    const reason = outcome.reason === 'gone' ? wasFree : outcome.reason;
    throw new LockNotAttachedError({ keys, fencingToken, reason });
  }
  if (outcome.status === 'unavailable') {
    if (outcome.sent !== false) putBack();
    throw unavailable(outcome);
  }
  const granted = { status: 'granted', fencingToken } as const;
  const lease = keeper.granted(request, { token, sentAt }, granted, now);
  const isInTime = lease.validForMsAt(now) > 0;
  if (isInTime && !queue.isClosed) return keeper.adopt(lease, request);
  putBack();
  throw isInTime ? new LockServiceClosedError(keys) : unavailable(tooLate(lease, now));
}
