import type { ServerResponse } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { Subject, type Observable } from 'rxjs';
import { streamTo } from '../../packages/board/lib/event-stream.js';
import { eventually } from '../support/eventually.js';

describe('a stream of events', () => {
  /** As much of a response of Node as is used. */
  function stageResponse(data: Observable<object>, contentOfEvent?: (event: object) => unknown) {
    const written: string[] = [];
    const calls: unknown[][] = [];
    const response = {
      ...{ shouldKeepAlive: true, writableLength: 0 },
      writeHead: (...args: unknown[]) => void calls.push(args),
      write: (text: string) => void written.push(text),
      end: () => void calls.push(['end']),
      destroy: () => void calls.push(['destroy']),
      addEventListener: () => undefined,
      removeEventListener: () => undefined,
    };
    const closing = new Subject<void>();
    const events = { name: 'key', data, ...(contentOfEvent && { contentOf: contentOfEvent }) };
    streamTo(response as unknown as ServerResponse, events, { 'X-Ours': 'yes' }, closing);
    return { written, calls, closing, response };
  }
  const event = (data: object): string => `event: key\ndata: ${JSON.stringify(data)}\n\n`;

  it('writes what is new, until the application closes', async () => {
    const source = new Subject<object>();
    const contentOfEvent = (given: object): unknown => (given as { what: number }).what;
    const { written, calls, closing, response } = stageResponse(source, contentOfEvent);
    for (const given of [{ what: 1 }, { what: 1, at: 2 }, { what: 2 }, { what: 1 }])
      source.next(given);
    await eventually(() => written.length === 4);
    const beat = 'retry: 1000\nevent: beat\ndata: {}\n\n';
    expect(written).toEqual([event({ what: 1 }), event({ what: 2 }), event({ what: 1 }), beat]);
    expect(response.shouldKeepAlive).toBe(false);
    expect(calls).toEqual([
      [
        200,
        {
          'X-Ours': 'yes',
          'Content-Type': 'text/event-stream; charset=utf-8',
          'Cache-Control': 'no-store, no-transform',
          'X-Accel-Buffering': 'no',
        },
      ],
    ]);
    closing.next();
    expect(calls.at(-1)).toEqual(['end']);
    source.next({ what: 9 });
    expect(written).toHaveLength(4);
  });

  it('ends where its data fail, and is cut where nobody reads it', () => {
    const source = new Subject<object>();
    const { calls, written } = stageResponse(source);
    source.error(new Error('no data'));
    expect(calls.at(-1)).toEqual(['end']);
    expect(written).toEqual([]);

    const other = new Subject<object>();
    const unread = stageResponse(other);
    unread.response.writableLength = 1_000_000;
    other.next({});
    expect(unread.calls).toHaveLength(1);
    unread.response.writableLength = 1_000_001;
    other.next({ more: true });
    expect(unread.calls.at(-1)).toEqual(['destroy']);
    unread.closing.next();
  });
});
