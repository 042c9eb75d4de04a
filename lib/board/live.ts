import type { ServerResponse } from 'node:http';
import {
  catchError,
  EMPTY,
  exhaustMap,
  finalize,
  fromEvent,
  merge,
  share,
  takeUntil,
  timer,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { contentOf, type BoardSnapshot } from './board-data.js';

/** How often the store is asked while somebody looks, in ms. */
const EVERY_MS = 1_000;

/** So often a browser hears that the connection stands, in ms. */
const BEAT_MS = 10_000;

/** After this the browser connects again, and the guards are asked again, in ms. */
const LONGEST_MS = 300_000;

/** The snapshots of one process: those who look at the same keys share one look at the store. */
export class LiveSnapshots {
  readonly #take: (prefix: string) => Promise<BoardSnapshot>;
  readonly #shared = new Map<string, Observable<BoardSnapshot>>();

  constructor(take: (prefix: string) => Promise<BoardSnapshot>) {
    this.#take = take;
  }

  /** One snapshot every second while somebody listens. */
  of(prefix: string): Observable<BoardSnapshot> {
    const known = this.#shared.get(prefix);
    if (known) return known;
    const made = timer(0, EVERY_MS).pipe(
      exhaustMap(() => this.#take(prefix)),
      finalize(() => this.#shared.delete(prefix)),
      share(),
    );
    this.#shared.set(prefix, made);
    return made;
  }
}

/** Writes snapshots that differ as server-sent events, until the client or the application goes. */
export function streamTo(
  response: ServerResponse,
  snapshots: Observable<BoardSnapshot>,
  headers: Readonly<Record<string, string>>,
  closing: Observable<unknown>,
): void {
  response.writeHead(200, {
    ...headers,
    'Content-Type': 'text/event-stream; charset=utf-8',
    // Middleware that compresses would keep the events back.
    'Cache-Control': 'no-store, no-transform',
    'X-Accel-Buffering': 'no',
  });
  response.write('retry: 1000\n\n');
  const gone = fromEvent(response, 'close');
  let last = '';
  const ends = merge(gone, closing, timer(LONGEST_MS));
  timer(BEAT_MS, BEAT_MS)
    .pipe(takeUntil(ends))
    .subscribe(() => response.write('event: beat\ndata: {}\n\n'));
  snapshots
    .pipe(
      takeUntil(ends),
      catchError(() => EMPTY),
      finalize(() => response.end()),
    )
    .subscribe((snapshot) => {
      const content = contentOf(snapshot);
      if (content === last) return;
      last = content;
      response.write(`event: snapshot\ndata: ${JSON.stringify(snapshot)}\n\n`);
    });
}
