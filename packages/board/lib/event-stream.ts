import type { ServerResponse } from 'node:http';
import {
  catchError,
  EMPTY,
  finalize,
  fromEvent,
  map,
  merge,
  takeUntil,
  timer,
  type Observable,
} from 'rxjs';
import type { Look } from './live.js';

/** After this the browser connects again, and the guards are asked again, in ms. */
const LONGEST_MS = 300_000;

/** After this many looks that show nothing new, all is sent again: the times in it grow old. */
const MOST_BEATS = 5;

/** A browser that loses the connection waits for a second. */
const START = 'retry: 1000\n\n';

/** Bytes: some snapshots of the most keys that are shown. */
const MOST_UNREAD = 4_000_000;

/** What Fastify has around the response of Node. */
interface FastifyReply {
  readonly raw: ServerResponse;
  hijack(): void;
}

export type BoardResponse = ServerResponse | FastifyReply;

/** One kind of event. */
export interface Events {
  readonly name: string;
  readonly looks: Observable<Look>;
}

/**
 * Writes events until the client or the application goes. Neither waits for it: the connection is closed with the response.
 * A look that shows nothing new is a "beat": the page then knows how old is what it shows.
 */
export function streamTo(
  response: BoardResponse,
  { name, looks }: Events,
  headers: Readonly<Record<string, string>>,
  closing: Observable<unknown>,
): void {
  const raw = rawOf(response);
  // The client may have left while a guard was asked.
  if (raw.destroyed || raw.closed) return;
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
  let shown: string | undefined;
  let beats = 0;
  raw.write(START);
  looks
    .pipe(
      map(({ at, text, content }) => {
        beats = content === shown ? beats + 1 : 0;
        const isNew = beats % MOST_BEATS === 0;
        shown = content;
        if (isNew) return `event: ${name}\ndata: ${text}\n\n`;
        return `event: beat\ndata: ${JSON.stringify({ at })}\n\n`;
      }),
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
