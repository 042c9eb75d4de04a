import type { ServerResponse } from 'node:http';
import {
  catchError,
  distinctUntilChanged,
  EMPTY,
  finalize,
  fromEvent,
  map,
  merge,
  takeUntil,
  timer,
  type Observable,
} from 'rxjs';

/** So often a browser hears that the connection stands, in ms. */
const BEAT_MS = 10_000;

/** After this the browser connects again, and the guards are asked again, in ms. */
const LONGEST_MS = 300_000;

/** A browser that loses the connection waits for a second. */
const BEAT = 'retry: 1000\nevent: beat\ndata: {}\n\n';

/** Bytes: some snapshots of the most keys that are shown. */
const MOST_UNREAD = 1_000_000;

/** What Fastify has around the response of Node. */
interface FastifyReply {
  readonly raw: ServerResponse;
  hijack(): void;
}

export type BoardResponse = ServerResponse | FastifyReply;

/** One kind of event. */
export interface Events<T extends object> {
  readonly name: string;
  readonly data: Observable<T>;
  /** What is equal for events of which the second tells nothing new. Default: all of them do. */
  readonly contentOf?: (event: T) => unknown;
}

/** Writes events until the client or the application goes. Neither waits for it: the connection is closed with the response. */
export function streamTo<T extends object>(
  response: BoardResponse,
  { name, data, contentOf = (event) => event }: Events<T>,
  headers: Readonly<Record<string, string>>,
  closing: Observable<unknown>,
): void {
  const raw = rawOf(response);
  // Else the connection outlives the response, and the shutdown waits for it. HTTP/2 has none of its own for a response.
  if ('shouldKeepAlive' in raw) raw.shouldKeepAlive = false;
  raw.writeHead(200, {
    ...headers,
    'Content-Type': 'text/event-stream; charset=utf-8',
    // Middleware that compresses would keep the events back, and proxies, too.
    'Cache-Control': 'no-store, no-transform',
    'X-Accel-Buffering': 'no',
  });
  const ends = merge(fromEvent(raw, 'close'), closing, timer(LONGEST_MS));
  const beats = timer(0, BEAT_MS).pipe(map(() => BEAT));
  const events = data.pipe(
    distinctUntilChanged((one, next) => one === next, contentOf),
    map((event) => `event: ${name}\ndata: ${JSON.stringify(event)}\n\n`),
  );
  merge(beats, events)
    .pipe(
      takeUntil(ends),
      catchError(() => EMPTY),
      finalize(() => raw.end()),
    )
    .subscribe((text) => {
      raw.write(text);
      // Who does not read gets nothing more: what the page shows would be as old as what the buffers hold.
      if (raw.writableLength > MOST_UNREAD) raw.destroy();
    });
}

/** The response of Node, which Fastify leaves to us from here on. */
function rawOf(response: BoardResponse): ServerResponse {
  if (!('raw' in response)) return response;
  response.hijack();
  return response.raw;
}
