import type { Instance, Lock, Row } from './answers.js';
import { count, whoOf } from './parts.js';

/** A dialog names at most this many keys. */
const MOST_NAMED = 5;

/** What the application answers. */
interface Done {
  readonly keys: readonly string[];
  /** If several keys were to be released: those that were free, that others hold by now, and that no lock can have. */
  readonly nothing?: readonly string[];
  readonly refused?: readonly string[];
  readonly invalid?: readonly string[];
  readonly unconfirmed?: readonly string[];
  readonly notRecorded?: string;
}

/** What an operator is about to do. */
export interface Deed {
  readonly path: 'release' | 'release-several' | 'release-instance' | 'forget-once';
  readonly title: string;
  /** What it means. */
  readonly effect: string;
  readonly verb: string;
  /** What is said when it is done, of the keys that it reached. */
  readonly done: (keys: readonly string[]) => string;
  /** What is said when there was nothing to do. */
  readonly nothing: string;
  /** What is said when the operator saw something else than there is now. */
  readonly refused: (now: unknown) => string;
  /** What the operator saw is part of it. */
  readonly body: object;
}

/** Starts a deed: a dialog asks why. */
export type Ask = (deed: Deed) => void;

export const releaseOf = ({ key, holders }: Lock, effect: string): Deed => ({
  path: 'release',
  title: `Release ${key}?`,
  effect,
  verb: 'Release',
  done: () => `Released ${key}.`,
  nothing: `${key} was free already.`,
  refused: (now) => `Another holder has ${key} now: ${holdersOf(now as Lock)}.`,
  body: { key, holders: holders.map(({ leaseId, fencingToken }) => ({ leaseId, fencingToken })) },
});

/** Releases the rows that an operator has chosen, with the holders that they showed. */
export const releaseSeveralOf = (rows: readonly Row[]): Deed => ({
  path: 'release-several',
  title: `Release ${count(rows.length, 'key')}?`,
  effect: `${rows
    .slice(0, MOST_NAMED)
    .map(({ key }) => key)
    .join(', ')}${rows.length > MOST_NAMED ? ' …' : ''}. Holders that run are notified at once.`,
  verb: 'Release',
  done: (keys) => `Released ${count(keys.length, 'key')}.`,
  nothing: 'They were free already.',
  refused: () => '',
  body: {
    locks: rows.map(({ key, leases }) => ({
      key,
      holders: leases.map(({ leaseId }) => ({ leaseId })),
    })),
  },
});

const holdersOf = ({ holders }: Lock): string =>
  holders
    .map(({ instance, fencingToken }) => {
      const who = instance === undefined ? 'not known' : whoOf(instance);
      return fencingToken === undefined ? who : `${who}, fencing token ${fencingToken}`;
    })
    .join('; ');

export const forgetOf = ({ key, once }: Lock): Deed => ({
  path: 'forget-once',
  title: `Forget the work ${key}?`,
  effect: 'The next caller does the work again.',
  verb: 'Forget',
  done: () => `Forgot ${key}.`,
  nothing: `Nothing was known of ${key}.`,
  refused: (now) => {
    const { once: work } = now as Lock;
    return `Its state has changed: ${work?.state ?? 'not known'}, attempts: ${work?.attempts ?? 0}.`;
  },
  body: { key, once: once && { state: once.state, attempts: once.attempts } },
});

export const releaseAllOf = (instance: Instance): Deed => ({
  path: 'release-instance',
  title: `Release all locks of ${whoOf(instance)}?`,
  effect:
    'For a process that is dead. If it still runs, its work continues beside that of the next holders until it is notified.',
  verb: 'Release all',
  done: (keys) => `Released ${keys.join(', ')}.`,
  nothing: 'It held nothing.',
  refused: () => `${whoOf(instance)} replies again.`,
  body: { id: instance.id },
});

/** Resolves with what to say; rejects with what went wrong. */
export async function perform(deed: Deed, reason: string): Promise<string> {
  const response = await fetch(`api/${deed.path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-holdfast-board': '1' },
    body: JSON.stringify({ ...deed.body, reason }),
  }).catch(() => {
    throw new Error('The application did not answer. It is not known whether it was done.');
  });
  const answer = (await response.json().catch(() => ({}))) as Partial<Done> & {
    readonly status?: unknown;
    readonly now?: unknown;
    readonly message?: unknown;
  };
  if (response.ok && answer.status === 'nothing') return deed.nothing;
  if (response.ok) return saidOf(deed, answer);
  if (answer.status === 'refused') throw new Error(`Not done. ${deed.refused(answer.now)}`);
  const why = typeof answer.message === 'string' ? `: ${answer.message}` : '.';
  // Redis may have carried out a request without a reply.
  const known = response.status < 500 ? 'Not done.' : 'It is not known whether it was done.';
  throw new Error(`${known} The application answered ${response.status}${why}`);
}

function saidOf({ done }: Deed, answer: Partial<Done>): string {
  const { keys = [], nothing = [], refused = [], unconfirmed = [], invalid = [] } = answer;
  const { notRecorded } = answer;
  const listed = (text: string, some: readonly string[]): string =>
    some.length === 0 ? '' : ` ${text}: ${some.join(', ')}.`;
  const missing =
    listed('Free already', nothing) +
    listed('Not done, because another holder has the key now', refused) +
    listed('Not done, because no lock can have this key', invalid) +
    listed('Redis did not confirm', unconfirmed);
  const unwritten =
    notRecorded === undefined ? '' : ` The audit log could not be written: ${notRecorded}`;
  return done(keys) + missing + unwritten;
}
