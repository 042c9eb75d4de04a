import { useEffect, useState } from 'preact/hooks';
import { now, setClock } from './time.js';

/** A connection on which nothing arrives for so long is dead, or the application stands still: it looks every second. */
const SILENCE_MS = 5_000;

/** After a refusal a browser does not try again by itself. */
const RETRY_MS = 3_000;

export interface Live<T> {
  readonly data: T | undefined;
  /** When the application has looked last, by its clock. */
  readonly seenMs: number | undefined;
  readonly isLost: boolean;
}

/**
 * The newest event of a stream. The stream is closed while the page is hidden: a browser has six connections to a
 * server.
 */
export function useEvents<T extends { readonly at: string }>(name: string, query: string): Live<T> {
  const [data, setData] = useState<T>();
  const [seenMs, setSeen] = useState<number>();
  const [isLost, setLost] = useState(false);

  useEffect(() => {
    let source: EventSource | undefined;
    let silence: ReturnType<typeof setTimeout> | undefined;
    let retry: ReturnType<typeof setTimeout> | undefined;

    const close = (): void => {
      clearTimeout(silence);
      clearTimeout(retry);
      source?.close();
      source = undefined;
    };
    const awaitWord = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => {
        setLost(true);
        connect();
      }, SILENCE_MS);
    };
    const hear = (event: MessageEvent): { readonly at: string } => {
      const said = JSON.parse(String(event.data)) as { readonly at: string };
      setClock(said.at);
      setSeen(now());
      setLost(false);
      awaitWord();
      return said;
    };
    const fail = (): void => {
      if (source?.readyState !== EventSource.CLOSED) return;
      setLost(true);
      clearTimeout(retry);
      retry = setTimeout(connect, RETRY_MS);
    };
    const connect = (): void => {
      close();
      if (document.hidden) return;
      awaitWord();
      source = new EventSource(`api/stream?${query}`);
      source.addEventListener('beat', hear);
      source.addEventListener(name, (event) => setData(hear(event) as T));
      source.addEventListener('error', fail);
    };

    connect();
    document.addEventListener('visibilitychange', connect);
    return () => {
      document.removeEventListener('visibilitychange', connect);
      close();
    };
  }, [name, query]);

  return { data, seenMs, isLost };
}
