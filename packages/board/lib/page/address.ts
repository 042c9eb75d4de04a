import { useEffect, useState } from 'preact/hooks';

/** What is shown: all keys with a prefix, or one key. It is in the fragment of the address, so it can be sent to a colleague. */
export interface Place {
  readonly prefix: string;
  readonly key: string | undefined;
}

function placeNow(): Place {
  const fragment = new URLSearchParams(location.hash.slice(1));
  return { prefix: fragment.get('prefix') ?? '', key: fragment.get('key') ?? undefined };
}

/** Whole: an address of a fragment alone would be relative to the base of the page. */
const addressOf = (fragment: Record<string, string>): string =>
  `${location.pathname}${location.search}#${new URLSearchParams(fragment).toString()}`;

export const hrefOfKey = (key: string): string => addressOf({ key });

export const hrefOfAll = (prefix = ''): string => addressOf(prefix === '' ? {} : { prefix });

/** Without a step in the history for every letter. */
export function search(prefix: string): void {
  history.replaceState(null, '', hrefOfAll(prefix));
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
