/** How much of what callers may do a run has seen. */
import { nameOf } from './grants.js';
import { type AnyEvent, type CallEvent, callEvents } from './history.js';

export interface Extent {
  readonly attached: number;
  readonly terms: number;
}

export function extentOf(events: readonly AnyEvent[]): Extent {
  const calls = callEvents(events);
  const hows = new Map(
    calls.flatMap((call) => (call.type === 'ask' ? [[nameOf(call), call.how]] : [])),
  );
  const count = (matches: (call: CallEvent) => boolean): number => calls.filter(matches).length;
  const isGranted = (how: string) => (call: CallEvent) =>
    call.type === 'granted' && hows.get(nameOf(call)) === how;
  return {
    attached: count(isGranted('attach')),
    terms: count(isGranted('lead')),
  };
}

const IN_WORDS: Readonly<Record<keyof Extent, string>> = {
  attached: 'lock was attached',
  terms: 'process was elected',
};

/** What a run should have seen, and has not, after so many grants. */
export const unseen = (
  extent: Extent,
  wanted: readonly (keyof Extent)[],
  grants: number,
): readonly string[] =>
  wanted
    .filter((each) => extent[each] === 0)
    .map((each) => `vacuous: no ${IN_WORDS[each]}, in ${grants} grants`);
