import { useEffect, useState } from 'preact/hooks';
import type { Holder, KeyAnswer } from './answers.js';
import { whoOf } from './parts.js';

/** What this page has seen of a key. */
export interface Seen {
  readonly at: string;
  readonly text: string;
}

const MOST_SEEN = 50;

/** Tells one tenure of a key from the next. */
const tenureOf = ({ instance, fencingToken, isForeign }: Holder): string =>
  [instance?.id, fencingToken, isForeign].join();

const nameOf = ({ instance, isForeign, isDetached = false }: Holder): string => {
  if (isDetached) return 'no process (detached)';
  if (isForeign) return 'other software';
  return instance === undefined ? 'an instance that is not known' : whoOf(instance);
};

/** The newest first: who has come to hold the key since the page was opened. */
export function useSeen(answer: KeyAnswer | undefined): readonly Seen[] {
  const [seen, setSeen] = useState<readonly Seen[]>([]);
  const holders = answer?.lock?.holders;
  const tenures = holders?.map(tenureOf).sort().join(';');
  useEffect(() => {
    if (answer === undefined || holders === undefined) return;
    const text = holders.length > 0 ? `Held by ${holders.map(nameOf).join('; ')}` : 'Free';
    setSeen((before) => [{ at: answer.at, text }, ...before].slice(0, MOST_SEEN));
  }, [tenures]);
  return seen;
}
