/** Checks that leaders are notified as docs/cron.md says. The rules for grants check that there is one at a time, and that terms grow. */
import { nameOf } from './grants.js';
import { type AnyEvent, type CallEvent, callEvents } from './history.js';

type Over = CallEvent & { readonly type: 'term-over' };

interface Term {
  readonly name: string;
  readonly client: string;
  readonly candidate: string;
  readonly grantedAt: number;
  readonly fencingToken: number;
  readonly overs: Over[];
  /** When its work ended, and how. */
  released?: CallEvent & { readonly type: 'released' };
}

/** What the signal of a term aborts with. */
const AFTER: Readonly<Record<string, string>> = {
  'stepped-down': 'AbortError',
  rotated: 'AbortError',
  stopped: 'AbortError',
  failed: 'Error',
  lost: 'LockLostError',
};

/** "When this instance is a candidate again": "after 1 s". */
const STANDS_ASIDE: ReadonlySet<string> = new Set(['stepped-down', 'rotated', 'failed']);
const STANDS_ASIDE_MS = 1_000;

/** Timers come up in slots. */
const EARLY_MS = 20;

export function leaderViolations(
  events: readonly AnyEvent[],
  killed: ReadonlySet<string>,
): readonly string[] {
  const terms = termsOf(events);
  return [
    ...terms.flatMap((term) => wronglyTold(term, killed)),
    ...terms.flatMap((term, index) => {
      const next = terms.slice(index + 1).find(({ candidate }) => candidate === term.candidate);
      return next === undefined ? [] : electedAgain(term, next);
    }),
  ];
}

function termsOf(events: readonly AnyEvent[]): readonly Term[] {
  const candidates = new Map<string, string>();
  const terms = new Map<string, Term>();
  const calls = [...callEvents(events)];
  for (const event of calls) {
    const { client, at } = event;
    const name = nameOf(event);
    const candidate = candidates.get(name);
    const term = terms.get(name);
    if (event.type === 'ask' && event.candidate !== undefined)
      candidates.set(name, nameOf({ client, ask: event.candidate }));
    if (event.type === 'granted' && candidate !== undefined) {
      const { fencingToken } = event;
      terms.set(name, { name, client, candidate, grantedAt: at, fencingToken, overs: [] });
    }
    if (event.type === 'released' && term !== undefined) term.released = event;
  }
  // A term that is over at once is notified of it before its work has looked at its lock.
  for (const event of calls)
    if (event.type === 'term-over') terms.get(nameOf(event))?.overs.push(event);
  return [...terms.values()];
}

/** "Holdfast calls `onLost` with the reason", once. */
function wronglyTold(
  { name, client, fencingToken, overs, released }: Term,
  killed: ReadonlySet<string>,
): readonly string[] {
  const [over] = overs;
  if (over === undefined)
    return released === undefined || killed.has(client)
      ? []
      : [`lead: ${name} was not notified that its term is over`];
  const hasFailed = released?.result === 'Error' && released.at <= over.at;
  return [
    ...(overs.length > 1
      ? [`lead: ${name} was notified ${overs.length} times that its term is over`]
      : []),
    ...(over.term === fencingToken
      ? []
      : [
          `lead: ${name} led in term ${fencingToken}, and was notified that term ${over.term} is over`,
        ]),
    ...(AFTER[over.reason] === over.after
      ? []
      : [`lead: the term of ${name} was over as ${over.reason}, after a ${over.after}`]),
    ...(hasFailed === (over.reason === 'failed')
      ? []
      : [
          `lead: the work of ${name} ended with ${released?.result}, and its term as ${over.reason}`,
        ]),
  ];
}

function electedAgain({ name, overs }: Term, next: Term): readonly string[] {
  const [over] = overs;
  if (over === undefined) return [];
  const afterMs = next.grantedAt - over.at;
  if (over.reason === 'stopped')
    return [`lead: ${name} was stopped, and elected again as ${next.name}`];
  return STANDS_ASIDE.has(over.reason) && afterMs < STANDS_ASIDE_MS - EARLY_MS
    ? [`lead: ${name} was ${over.reason}, and elected again after ${afterMs.toFixed(0)} ms`]
    : [];
}
