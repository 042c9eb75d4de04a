import type {
  ExtendOutcome,
  LeaseRenewal,
  LeaseStore,
  LockStore,
  ReleaseOutcome,
  SeveralLeases,
  TransferOutcome,
  TransferRequest,
  Unavailable,
} from '../store/lock-store.js';

/** A request for all keys of a lock, which becomes one for each of them. */
export type ForAll<Request> = Omit<Request, 'key'> & Pick<SeveralLeases, 'keys'>;

/** A lock that has lost one of its keys is lost, however the others are. */
const worstOf = (outcomes: readonly ExtendOutcome[]): ExtendOutcome | undefined =>
  outcomes.find((outcome) => outcome.status === 'lost' && outcome.reason === 'stolen') ??
  outcomes.find(({ status }) => status === 'lost') ??
  outcomes.find(({ status }) => status === 'unavailable') ??
  outcomes[0];

/** Renews locks; the outcomes are in their order. */
export async function extendAll(
  store: LeaseStore,
  locks: readonly ForAll<LeaseRenewal>[],
): Promise<readonly ExtendOutcome[]> {
  const outcomes = await store.extend(
    locks.flatMap(({ keys, ...lease }) => keys.map((key) => ({ ...lease, key }))),
  );
  let next = 0;
  return locks.flatMap(({ keys }) => {
    const since = next;
    next += keys.length;
    return worstOf(outcomes.slice(since, next)) ?? [];
  });
}

/** Releases a lock: a failure at one of its keys keeps no other one. */
export function releaseAll(
  store: LeaseStore,
  { keys, ...lease }: SeveralLeases & { readonly isPlain?: boolean },
  lastToken?: number,
  keepMs?: number,
): Promise<ReleaseOutcome> {
  const release = (key: string): Promise<ReleaseOutcome> =>
    store.release({ ...lease, key }, lastToken, keepMs);
  const [key, another] = keys;
  if (key !== undefined && another === undefined) return release(key);
  return Promise.all(keys.map(release)).then(
    (outcomes) =>
      outcomes.find(({ status }) => status === 'unavailable') ??
      outcomes.find(({ status }) => status === 'not-held') ?? { status: 'released' },
  );
}

/**
 * Gives a lock another owner token, one key after the other, in one order: of two callers that attach one lock, the one
 * that has the first key gets it. If a key is lost, no caller has the keys that were transferred before: they are released.
 */
export async function transferAll(
  store: LockStore,
  { keys, ...request }: ForAll<TransferRequest>,
): Promise<TransferOutcome> {
  const { to, ttlMs } = request;
  const done: string[] = [];
  for (const key of keys) {
    const outcome = await store.transfer({ ...request, key });
    if (outcome.status === 'lost' && done.length > 0) {
      const undone = await releaseAll(store, { keys: done, token: to, ttlMs });
      return undone.status === 'unavailable' ? undone : outcome;
    }
    if (outcome.status === 'unavailable') return done.length > 0 ? wasSent(outcome) : outcome;
    if (outcome.status === 'lost') return outcome;
    done.push(key);
  }
  return { status: 'transferred' };
}

/** The last request may never have left the process, but one before it did. */
export function wasSent({ sent: _, ...outage }: Unavailable): Unavailable {
  return outage;
}
