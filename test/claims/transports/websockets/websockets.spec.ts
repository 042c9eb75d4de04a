import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { io, type Socket } from 'socket.io-client';
import WebSocket from 'ws';
import { eventually, until } from '../../../support/eventually.js';
import { ChildApplication, START_LIMIT_MS } from '../support/child-application.js';

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

/** A client that stands in line and leaves: its call does not begin. */
async function expectToLeaveTheLine(
  app: ChildApplication,
  id: string,
  { ask, leave }: { readonly ask: () => void; readonly leave: () => void },
): Promise<void> {
  const notes = async (): Promise<readonly string[]> =>
    (await app.ask('notes')) as readonly string[];
  await app.ask('hold', `order:${id}`);
  const before = (await notes()).length;
  ask();
  await eventually(async () => (await notes()).length > before);
  leave();
  await eventually(async () => (await notes()).includes('gone'));
  await app.ask('release', `order:${id}`);
  // Whoever still stood in line would come before this.
  await app.ask('hold', `order:${id}`);
  expect(await notes()).not.toContain(`began ${id}`);
  await app.ask('release', `order:${id}`);
}

describe('a gateway of socket.io', () => {
  let app: ChildApplication;
  let socket: Socket;

  beforeAll(async () => {
    app = await ChildApplication.start(new URL('./application.ts', import.meta.url));
    socket = io(app.url, { transports: ['websocket'] });
    await until(socket, 'connect');
  }, START_LIMIT_MS);
  afterAll(async () => {
    socket.disconnect();
    await app.close();
  });

  it.each(['pay', 'service', 'guarded', 'plain', 'plain service', 'plain guarded'])(
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

  it('tells a client that a newer call has replaced its call', async () => {
    const acknowledgement: unknown = await app.replacing(`order:${ORDER.id}`, () =>
      socket.emitWithAck('work', ORDER),
    );
    expect(acknowledgement).toEqual({
      ...LOSS,
      ...{ message: 'A newer request has taken the place of this one.', code: 'LOCK_REPLACED' },
    });
  });

  it('takes the lock after the guards and the pipes', async () => {
    expect(await socket.emitWithAck('keys', { id: '07', raw: '07' })).toEqual([
      'order:7',
      'raw:07',
    ]);
    const before = (await app.ask('notes')) as readonly string[];
    await app.ask('hold', `order:${ORDER.id}`);
    expect(await socket.emitWithAck('plain', ORDER)).toEqual(answerTo('plain'));
    await app.ask('release', `order:${ORDER.id}`);
    expect(await app.ask('notes')).toEqual([...before, 'asked']);
  });

  it('takes a client that disconnects out of the line', async () => {
    const leaving = io(app.url, { transports: ['websocket'], forceNew: true });
    await until(leaving, 'connect');
    await expectToLeaveTheLine(app, 'left', {
      ask: () => leaving.emit('in line', { id: 'left' }),
      leave: () => leaving.disconnect(),
    });
    expect(await socket.emitWithAck('in line', { id: 'kept' })).toBe('done');
  });

  it('acknowledges nothing before an interceptor has given up', async () => {
    await app.ask('hold', `order:${ORDER.id}`);
    const acknowledgement: Promise<unknown> = socket.emitWithAck('retried', ORDER);
    await eventually(async () =>
      ((await app.ask('notes')) as readonly string[]).includes('refused'),
    );
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
  }, START_LIMIT_MS);
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

  it.each(['pay', 'service', 'guarded', 'plain', 'plain service', 'plain guarded'])(
    'tells a client that %s was refused: by a message "exception"',
    async (event) => {
      await app.ask('hold', `order:${ORDER.id}`);
      const answer = await ask(event);
      await app.ask('release', `order:${ORDER.id}`);
      expect(answer).toEqual({ event: 'exception', data: answerTo(event) });
    },
  );

  it('tells a client that the store is out, and of a loss', async () => {
    for (const event of ['pay', 'plain', 'plain service', 'plain guarded'])
      expect(await app.duringOutage(() => ask(event))).toEqual({
        event: 'exception',
        data: outageAt(event),
      });
    expect(await app.losing(`order:${ORDER.id}`, () => ask('work'))).toEqual({
      event: 'exception',
      data: LOSS,
    });
  });

  it('takes a client whose connection is cut out of the line', async () => {
    const leaving = new WebSocket(app.url.replace('http', 'ws'));
    await until(leaving, 'open');
    await expectToLeaveTheLine(app, 'left', {
      ask: () => leaving.send(JSON.stringify({ event: 'in line', data: { id: 'left' } })),
      leave: () => leaving.terminate(),
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
