/** How much of what callers may do a run has seen. */
import { nameOf } from './grants.js';
import { type AnyEvent, type CallEvent, callEvents } from './history.js';

export interface Extent {
  readonly attached: number;
  readonly terms: number;
  readonly 'done once': number;
  readonly jobs: number;
  readonly replacing: number;
}

export function extentOf(events: readonly AnyEvent[]): Extent {
  const calls = callEvents(events);
  const asks = new Map(
    calls.flatMap((call) => (call.type === 'ask' ? [[nameOf(call), call]] : [])),
  );
  const count = (matches: (call: CallEvent) => boolean): number => calls.filter(matches).length;
  const isGranted = (how: string) => (call: CallEvent) =>
    call.type === 'granted' && asks.get(nameOf(call))?.how === how;
  return {
    attached: count(isGranted('attach')),
    terms: count(isGranted('lead')),
    'done once': count((call) => call.type === 'once' && call.outcome === 'completed'),
    jobs: count(isGranted('job')),
    replacing: count(
      (call) => call.type === 'granted' && asks.get(nameOf(call))?.replaceWaitMs !== undefined,
    ),
  };
}

const IN_WORDS: Readonly<Record<keyof Extent, string>> = {
  attached: 'lock was attached',
  terms: 'process was elected',
  'done once': 'work was done once',
  jobs: 'job was run',
  replacing: 'call replaced another one',
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
