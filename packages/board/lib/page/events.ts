import { useEffect, useState } from 'preact/hooks';
import { setClock } from './time.js';

/** A connection on which nothing arrives for so long is dead: the application sends a beat every 10 s. */
const SILENCE_MS = 25_000;

/** A reconnection within this time does not count as a lost connection. */
const GRACE_MS = 3_000;

/** After a refusal a browser does not try again by itself. */
const RETRY_MS = 3_000;

export interface Live<T> {
  readonly data: T | undefined;
  readonly isLost: boolean;
}

/**
 * The newest event of a stream. The stream is closed while the page is hidden: a browser has six connections to a
 * server.
 */
export function useEvents<T extends { readonly at: string }>(name: string, query: string): Live<T> {
  const [data, setData] = useState<T>();
  const [isLost, setLost] = useState(false);

  useEffect(() => {
    let source: EventSource | undefined;
    let silence: ReturnType<typeof setTimeout> | undefined;
    let grace: ReturnType<typeof setTimeout> | undefined;
    let retry: ReturnType<typeof setTimeout> | undefined;

    const close = (): void => {
      clearTimeout(silence);
      clearTimeout(retry);
      source?.close();
      source = undefined;
    };
    const fail = (): void => {
      grace ??= setTimeout(() => setLost(true), GRACE_MS);
      if (source?.readyState !== EventSource.CLOSED) return;
      clearTimeout(retry);
      retry = setTimeout(connect, RETRY_MS);
    };
    const hear = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => {
        fail();
        connect();
      }, SILENCE_MS);
      clearTimeout(grace);
      grace = undefined;
      setLost(false);
    };
    const connect = (): void => {
      close();
      if (document.hidden) return;
      source = new EventSource(`api/stream?${query}`);
      source.addEventListener('beat', hear);
      source.addEventListener(name, (event) => {
        hear();
        const next = JSON.parse(String(event.data)) as T;
        setClock(next.at);
        setData(next);
      });
      source.addEventListener('error', fail);
    };

    connect();
    document.addEventListener('visibilitychange', connect);
    return () => {
      document.removeEventListener('visibilitychange', connect);
      clearTimeout(grace);
      close();
    };
  }, [name, query]);

  return { data, isLost };
}
