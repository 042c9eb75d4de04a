import type { ServerResponse } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { Subject, type Observable } from 'rxjs';
import { streamTo } from '../../packages/board/lib/event-stream.js';
import type { Look } from '../../packages/board/lib/live.js';

describe('a stream of events', () => {
  /** As much of a response of Node as is used. */
  function stageResponse(looks: Observable<Look>, facts: object = {}) {
    const written: string[] = [];
    const calls: unknown[][] = [];
    const response = {
      ...{ shouldKeepAlive: true, writableLength: 0, ...facts },
      writeHead: (...args: unknown[]) => void calls.push(args),
      write: (text: string) => void written.push(text),
      end: () => void calls.push(['end']),
      destroy: () => void calls.push(['destroy']),
      addEventListener: () => undefined,
      removeEventListener: () => undefined,
    };
    const closing = new Subject<void>();
    streamTo(
      response as unknown as ServerResponse,
      { name: 'key', looks },
      { 'X-Ours': 'yes' },
      closing,
    );
    return { written, calls, closing, response };
  }
  const at = new Date(0);
  const look = (content: string): Look => ({ at, text: `{"what":"${content}"}`, content });
  const event = (content: string): string => `event: key\ndata: ${look(content).text}\n\n`;
  const START = 'retry: 1000\n\n';

  it('writes what is new, and when it looked, until the application closes', () => {
    const source = new Subject<Look>();
    const { written, calls, closing, response } = stageResponse(source);
    for (const content of ['1', '1', '2', '1']) source.next(look(content));
    const beat = 'event: beat\ndata: {"at":"1970-01-01T00:00:00.000Z"}\n\n';
    expect(written).toEqual([START, event('1'), beat, event('2'), event('1')]);
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
    source.next(look('9'));
    expect(written).toHaveLength(5);
  });

  it('is not begun for a client that has left while a guard was asked', () => {
    const source = new Subject<Look>();
    const { written, calls } = stageResponse(source, { destroyed: true });
    expect([source.observed, written, calls]).toEqual([false, [], []]);
  });

  it('sends all again after five looks that show nothing new', () => {
    const source = new Subject<Look>();
    const { written, closing } = stageResponse(source);
    for (let looks = 0; looks < 6; looks += 1) source.next(look('1'));
    expect(written.filter((text) => text === event('1'))).toHaveLength(2);
    expect(written.at(-1)).toBe(event('1'));
    closing.next();
  });

  it('ends where its data fail, and is cut where nobody reads it', () => {
    const source = new Subject<Look>();
    const { calls, written } = stageResponse(source);
    source.error(new Error('no data'));
    expect(calls.at(-1)).toEqual(['end']);
    expect(written).toEqual([START]);

    const other = new Subject<Look>();
    const unread = stageResponse(other);
    unread.response.writableLength = 4_000_000;
    other.next(look('1'));
    expect(unread.calls).toHaveLength(1);
    unread.response.writableLength = 4_000_001;
    other.next(look('2'));
    expect(unread.calls.at(-1)).toEqual(['destroy']);
    unread.closing.next();
  });
});
