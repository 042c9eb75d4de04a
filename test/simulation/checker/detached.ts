import { nameOf, type Grant } from '../../faults/grants.js';
import type { HistoryEvent } from '../../faults/history.js';
import type { SimEvent } from '../history.js';
import type { Facts } from './facts.js';

type Detached = SimEvent & { readonly type: 'detached' };

/** By how much the clock of a server may be faster, of a TTL. */
const DRIFT = 0.01;

/** For what is on its way, and timers that are late. */
const SLACK_MS = 40;

/** Whom the history names while a lock has no holder. */
const nobodyAfter = (sender: string): string => `${sender}:nobody`;

/** The time without a holder as a grant of nobody's: from the answer to `detach` until the lock is attached, or its time is over. */
export function unheld(event: Detached, events: readonly SimEvent[]): readonly HistoryEvent[] {
  const { at, client, ask, part, keys, mode, places, fencingToken, forMs } = event;
  const detachedAt = events.find(
    (other) => other.type === 'detaches' && other.client === client && other.part === part,
  )!.at;
  const attempts = attemptsOf(event, events);
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
    { at, ...nobody, type: 'held', until: surelyUntil },
    ...(surelyUntil > at
      ? [{ at: surelyUntil, ...nobody, type: 'held' as const, until: surelyUntil }]
      : []),
    { at: Math.max(at, perhapsUntil), ...nobody, type: 'released', result: 'attached' },
  ];
}

interface Attempt {
  readonly at: number;
  readonly name: string;
  readonly client: string;
  readonly grantedAt: number | undefined;
  readonly fencingToken: number | undefined;
  readonly error: string | undefined;
}

function attemptsOf({ client, part }: Detached, events: readonly SimEvent[]): readonly Attempt[] {
  return events.flatMap((event, index) => {
    if (event.type !== 'ask' || event.sender !== client || event.part !== part) return [];
    const name = nameOf(event);
    const answer = events
      .slice(index + 1)
      .find((other) => 'ask' in other && nameOf(other) === name);
    const isGranted = answer?.type === 'granted';
    return [
      {
        ...{ at: event.at, name, client: event.client },
        grantedAt: isGranted ? answer.at : undefined,
        fencingToken: isGranted ? answer.fencingToken : undefined,
        error: answer?.type === 'failed' ? answer.error : undefined,
      },
    ];
  });
}

/** "`locks.attach(text)` continues the lock": with its token, once, and whenever it comes in time. */
export function detachViolations({ events, done }: Facts): readonly string[] {
  return events.flatMap((event) => {
    if (event.type !== 'detached') return [];
    const { fencingToken, forMs, at } = event;
    const attempts = attemptsOf(event, events);
    const attached = attempts.filter(({ grantedAt }) => grantedAt !== undefined);
    const [first] = attempts;
    const isInTime = first !== undefined && first.at < at + forMs * (1 - DRIFT) - 3 * SLACK_MS;
    const isRefused = first?.error === 'LockNotAttachedError';
    return [
      ...attached
        .filter((attempt) => attempt.fencingToken !== fencingToken)
        .map(({ name }) => `attach: ${name} has another token than the lock that it attached`),
      ...(attached.length > 1
        ? [`attach: ${attached.map(({ name }) => name).join(' and ')} attached one lock`]
        : []),
      ...(done.length === 0 && isInTime && isRefused
        ? [`attach: ${first.name} came in time, and was refused`]
        : []),
    ];
  });
}

/** Marks grants of one lease, in whichever process: they have one token. */
export function withLeases(
  grants: readonly Grant[],
  events: readonly SimEvent[],
): readonly Grant[] {
  const leases = new Map<string, string>();
  const leaseOf = (name: string): string => leases.get(name) ?? name;
  for (const event of events) {
    if (event.type === 'changed')
      leases.set(nameOf(event), leaseOf(nameOf({ client: event.client, ask: event.continues })));
    if (event.type === 'detached')
      leases.set(
        nameOf({ client: nobodyAfter(event.client), ask: event.part }),
        leaseOf(nameOf(event)),
      );
    if (event.type === 'ask' && event.sender !== undefined && event.part !== undefined)
      leases.set(
        nameOf(event),
        leaseOf(nameOf({ client: nobodyAfter(event.sender), ask: event.part })),
      );
  }
  return grants.map((grant) => ({ ...grant, lease: leaseOf(grant.name) }));
}
