import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { io, type Socket } from 'socket.io-client';
import WebSocket from 'ws';
import { eventually, until } from '../../support/eventually.js';
import { ChildApplication } from '../support/child-application.js';

const ORDER = { id: 's3cret' };

const answerTo = (pattern: string): object => ({
  statusCode: 409,
  message: 'Somebody else is working on this right now. Try again later.',
  error: 'Conflict',
  code: 'LOCK_NOT_ACQUIRED',
  retryAfterMs: expect.any(Number),
  cause: { pattern },
});

const outageAt = (pattern: string): object => ({
  statusCode: 503,
  message: 'The lock store is not available. Try again later.',
  error: 'Service Unavailable',
  code: 'LOCK_STORE_UNAVAILABLE',
  retryAfterMs: 1_000,
  cause: { pattern },
});

const LOSS = {
  statusCode: 409,
  message: expect.stringMatching(/^The lock was lost while the work ran/),
  error: 'Conflict',
  code: 'LOCK_LOST',
  cause: { pattern: 'work' },
};

describe('a gateway of socket.io', () => {
  let app: ChildApplication;
  let socket: Socket;

  beforeAll(async () => {
    app = await ChildApplication.start(new URL('./application.ts', import.meta.url));
    socket = io(app.url, { transports: ['websocket'] });
    await until(socket, 'connect');
  });
  afterAll(async () => {
    socket.disconnect();
    await app.close();
  });

  it.each(['pay', 'service', 'guarded', 'plain service', 'plain guarded'])(
    'tells a client that %s was refused: by an exception, and as the acknowledgement',
    async (pattern) => {
      expect(await socket.emitWithAck(pattern, ORDER)).toMatch(/paid|done/);
      await app.ask('hold', `order:${ORDER.id}`);
      const exception = until(socket, 'exception');
      const acknowledgement: unknown = await socket.emitWithAck(pattern, ORDER);
      await app.ask('release', `order:${ORDER.id}`);
      expect(acknowledgement).toEqual(answerTo(pattern));
      expect(await exception).toEqual([acknowledgement]);
    },
  );

  it.each(['plain', 'plain service', 'plain guarded'])(
    'tells a client that the store is out: at %s',
    async (pattern) => {
      const exception = until(socket, 'exception');
      const acknowledgement: unknown = await app.duringOutage(() =>
        socket.emitWithAck(pattern, ORDER),
      );
      expect(acknowledgement).toEqual(outageAt(pattern));
      expect(await exception).toEqual([acknowledgement]);
    },
  );

  it('tells a client of a loss', async () => {
    const exception = until(socket, 'exception');
    const acknowledgement: unknown = await app.losing(`order:${ORDER.id}`, () =>
      socket.emitWithAck('work', ORDER),
    );
    expect(acknowledgement).toEqual(LOSS);
    expect(await exception).toEqual([acknowledgement]);
  });

  it('acknowledges nothing before an interceptor has given up', async () => {
    await app.ask('hold', `order:${ORDER.id}`);
    const acknowledgement: Promise<unknown> = socket.emitWithAck('retried', ORDER);
    await eventually(async () => ((await app.ask('notes')) as readonly string[]).length > 0);
    await app.ask('release', `order:${ORDER.id}`);
    expect(await acknowledgement).toBe('paid 6');
  });
});

describe('a gateway of ws', () => {
  let app: ChildApplication;
  let socket: WebSocket;

  beforeAll(async () => {
    app = await ChildApplication.start(new URL('./application.ts', import.meta.url), ['ws']);
    socket = new WebSocket(app.url.replace('http', 'ws'));
    await until(socket, 'open');
  });
  afterAll(async () => {
    socket.terminate();
    await app.close();
  });

  const ask = async (event: string): Promise<unknown> => {
    const answered = until(socket, 'message');
    socket.send(JSON.stringify({ event, data: ORDER }));
    const [answer] = (await answered) as [Buffer];
    return JSON.parse(answer.toString());
  };

  it.each(['pay', 'service', 'guarded', 'plain service', 'plain guarded'])(
    'tells a client that %s was refused: by a message "exception"',
    async (event) => {
      await app.ask('hold', `order:${ORDER.id}`);
      const answer = await ask(event);
      await app.ask('release', `order:${ORDER.id}`);
      expect(answer).toEqual({ event: 'exception', data: answerTo(event) });
    },
  );

  it('tells a client that the store is out, and of a loss', async () => {
    for (const event of ['pay', 'plain service', 'plain guarded'])
      expect(await app.duringOutage(() => ask(event))).toEqual({
        event: 'exception',
        data: outageAt(event),
      });
    expect(await app.losing(`order:${ORDER.id}`, () => ask('work'))).toEqual({
      event: 'exception',
      data: LOSS,
    });
  });

  it('leaves the answer to a filter of the gateway', async () => {
    await app.ask('hold', `order:${ORDER.id}`);
    const answered = until(socket, 'message');
    socket.send(JSON.stringify({ event: 'apologized', data: ORDER }));
    const [answer] = (await answered) as [Buffer];
    await app.ask('release', `order:${ORDER.id}`);
    expect(answer.toString()).toBe('sorry: LOCK_NOT_ACQUIRED');
  });
});
