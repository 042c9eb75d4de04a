import { useEffect, useState } from 'preact/hooks';
import type { View } from '../board.types.js';

/** What is shown. It is in the fragment of the address, so it can be sent to a colleague. */
export interface Place extends View {
  readonly key: string | undefined;
  /** All interventions. */
  readonly isAudit: boolean;
}

const NOWHERE: View = { search: '', filter: 'all', sort: 'waiting', page: 1, instance: '' };

function placeNow(): Place {
  const fragment = new URLSearchParams(location.hash.slice(1));
  return {
    search: fragment.get('search') ?? '',
    // The application takes what it does not know for the default.
    filter: (fragment.get('filter') ?? 'all') as View['filter'],
    sort: (fragment.get('sort') ?? 'waiting') as View['sort'],
    page: Number(fragment.get('page') ?? 1),
    instance: fragment.get('instance') ?? '',
    key: fragment.get('key') ?? undefined,
    isAudit: fragment.has('audit'),
  };
}

/** Whole: an address of a fragment alone would be relative to the base of the page. */
const addressOf = (fragment: Record<string, string>): string =>
  `${location.pathname}${location.search}#${new URLSearchParams(fragment).toString()}`;

export const hrefOfKey = (key: string): string => addressOf({ key });

export const hrefOfInstance = (instance: string): string => addressOf({ instance });

export const hrefOfAudit = (): string => addressOf({ audit: 'all' });

/** What differs from the first view. */
export const queryOf = (view: View): Record<string, string> =>
  Object.fromEntries(
    Object.entries(NOWHERE).flatMap(([name, value]) => {
      const given = view[name as keyof View];
      return given === value ? [] : [[name, String(given)]];
    }),
  );

export const hrefOfView = (view: Partial<View> = {}): string =>
  addressOf(queryOf({ ...NOWHERE, ...view }));

/** Without a step in the history for every letter. */
export function show(view: Partial<View>): void {
  history.replaceState(null, '', hrefOfView(view));
  dispatchEvent(new HashChangeEvent('hashchange'));
}

export function usePlace(): Place {
  const [place, setPlace] = useState(placeNow);
  useEffect(() => {
    const move = (): void => setPlace(placeNow());
    addEventListener('hashchange', move);
    return () => removeEventListener('hashchange', move);
  }, []);
  return place;
}
