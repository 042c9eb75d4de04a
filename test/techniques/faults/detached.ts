/** Locks that go to another process: they are taken meanwhile, and attached once, in time, with their token. It knows nothing of the library. */
import { type Grant, nameOf } from './grants.js';
import { type AnyEvent, type CallEvent, callEvents, type HistoryEvent } from './history.js';

type Detached = CallEvent & { readonly type: 'detached' };

/** By how much the clock of a server may be faster, of a TTL. */
const DRIFT = 0.01;

/** For what is on its way, and timers that are late. */
const SLACK_MS = 40;

/** Whom the history names while a lock has no holder. */
const nobodyAfter = (sender: string): string => `${sender}:nobody`;

/** Whether a grant is that of a detached lock, which has no holder. */
export const isNobody = (client = ''): boolean => client.endsWith(':nobody');

const parcelOf = (sender: string, part: number): string => nameOf({ client: sender, ask: part });

interface Attempt {
  readonly at: number;
  readonly name: string;
  answeredAt?: number;
  grantedAt?: number;
  fencingToken?: number;
  error?: string;
}

/** What became of the locks of a history that were detached. */
class Parcels {
  readonly #detachedAt = new Map<string, number>();
  readonly #attempts = new Map<string, Attempt[]>();

  constructor(events: readonly AnyEvent[]) {
    const open = new Map<string, Attempt>();
    for (const event of callEvents(events)) {
      const name = nameOf(event);
      const attempt = open.get(name);
      if (event.type === 'detaches')
        this.#detachedAt.set(parcelOf(event.client, event.part), event.at);
      if (event.type === 'ask' && event.sender !== undefined && event.part !== undefined) {
        const parcel = parcelOf(event.sender, event.part);
        const begun: Attempt = { at: event.at, name };
        open.set(name, begun);
        this.#attempts.set(parcel, [...(this.#attempts.get(parcel) ?? []), begun]);
      } else if (attempt !== undefined) {
        open.delete(name);
        attempt.answeredAt = event.at;
        if (event.type === 'failed') attempt.error = event.error;
        if (event.type !== 'granted') continue;
        attempt.grantedAt = event.at;
        attempt.fencingToken = event.fencingToken;
      }
    }
  }

  /** When it was asked for. */
  detachedAt({ client, part }: Detached): number {
    return this.#detachedAt.get(parcelOf(client, part))!;
  }

  attempts({ client, part }: Detached): readonly Attempt[] {
    return this.#attempts.get(parcelOf(client, part)) ?? [];
  }
}

/** The time without a holder as a grant of nobody's: from the answer to `detach` until the lock is attached, or its time is over. */
function unheld(event: Detached, parcels: Parcels): readonly HistoryEvent[] {
  const { at, client, ask, part, keys, mode, places, fencingToken, forMs } = event;
  const detachedAt = parcels.detachedAt(event);
  const attempts = parcels.attempts(event);
  const firstAskedAt = Math.min(Infinity, ...attempts.map((attempt) => attempt.at));
  const attachedAt = attempts.find((attempt) => attempt.grantedAt !== undefined)?.grantedAt;
  const surelyUntil = Math.min(firstAskedAt, detachedAt + forMs * (1 - DRIFT) - SLACK_MS);
  const perhapsUntil = attachedAt ?? at + forMs * (1 + DRIFT) + SLACK_MS;
  const nobody = { client: nobodyAfter(client), ask: part };
  const taken = places === undefined ? {} : { places };
  return [
    { at, client, ask, type: 'released', result: 'detached' },
    { at: detachedAt, ...nobody, type: 'ask', how: 'detach', keys, mode, ...taken, waitMs: 0 },
    { at, ...nobody, type: 'granted', keys, fencingToken },
    // Its time may be over by the answer: the process was stopped meanwhile.
    ...(surelyUntil > at ? [at, surelyUntil] : []).map((seenAt) => ({
      ...{ at: seenAt, ...nobody, until: surelyUntil },
      type: 'held' as const,
    })),
    { at: Math.max(at, perhapsUntil), ...nobody, type: 'released', result: 'attached' },
  ];
}

/**
 * "`locks.attach(text)` continues the lock": with its token, once, and whenever it comes in time.
 *
 * @param isCalm whether nothing happened to the store between two moments that would have it forget a lock, or keep it for longer
 * @param isBack whether the store may know between two moments what was over, and grants locks nevertheless
 */
export function detachViolations(
  events: readonly AnyEvent[],
  isCalm: (from: number, to: number) => boolean,
  isBack: (from: number, to: number) => boolean = () => false,
): readonly string[] {
  const parcels = new Parcels(events);
  return callEvents(events).flatMap((event) => {
    if (event.type !== 'detached') return [];
    const { fencingToken, forMs, at } = event;
    const attempts = parcels.attempts(event);
    const attached = attempts.filter(({ grantedAt }) => grantedAt !== undefined);
    const [winner, ...others] = attached;
    const isTwice = others.some((other) => !isBack(winner!.at, other.at));
    const [first] = attempts;
    const surelyUntil = at + forMs * (1 - DRIFT) - 3 * SLACK_MS;
    const isInTime = first?.answeredAt !== undefined && first.answeredAt < surelyUntil;
    // Of several who attach it in the same moment any may get it.
    const isRefused = attempts.every(({ error }) => error === 'LockNotAttachedError');
    const isOver = at + forMs * (1 + DRIFT) + SLACK_MS;
    const calm = ({ at: askedAt, answeredAt = askedAt }: Attempt): boolean =>
      isCalm(parcels.detachedAt(event), answeredAt);
    return [
      ...attached
        .filter((attempt) => attempt.fencingToken !== fencingToken)
        .map(({ name }) => `attach: ${name} has another token than the lock that it attached`),
      ...(isTwice
        ? [`attach: ${attached.map(({ name }) => name).join(' and ')} attached one lock`]
        : []),
      ...attached
        .filter((attempt) => attempt.at > isOver && calm(attempt))
        .map(({ name }) => `attach: ${name} came too late, and attached the lock`),
      ...(isInTime && isRefused && calm(first)
        ? [`attach: ${first.name} came in time, and was refused`]
        : []),
    ];
  });
}

/** What callers wrote down besides what they asked for and got. */
const NOTES: ReadonlySet<string> = new Set<CallEvent['type']>(['detaches', 'term-over']);

/** The events as checks of grants know them: while a lock has no holder, nobody holds it. */
export function partsOf<Event extends AnyEvent>(
  events: readonly Event[],
): readonly (Event | HistoryEvent)[] {
  const parcels = new Parcels(events);
  return events.flatMap((each): readonly (Event | HistoryEvent)[] => {
    if (NOTES.has(each.type)) return [];
    const [event] = callEvents([each]);
    return event?.type === 'detached' ? unheld(event, parcels) : [each];
  });
}

/** Marks grants of one lease, in whichever process: they have one token. */
export function withLeases(
  grants: readonly Grant[],
  events: readonly AnyEvent[],
): readonly Grant[] {
  const leases = new Map<string, string>();
  const leaseOf = (name: string): string => leases.get(name) ?? name;
  const nobody = (client: string, part: number): string => parcelOf(nobodyAfter(client), part);
  for (const event of callEvents(events)) {
    if (event.type === 'detached')
      leases.set(nobody(event.client, event.part), leaseOf(nameOf(event)));
    if (event.type === 'ask' && event.sender !== undefined && event.part !== undefined)
      leases.set(nameOf(event), leaseOf(nobody(event.sender, event.part)));
  }
  return grants.map((grant) => ({ ...grant, lease: leaseOf(grant.name) }));
}
