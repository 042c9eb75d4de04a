import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import {
  Controller,
  Get,
  Header,
  Next,
  Param,
  Req,
  Res,
  Sse,
  StreamableFile,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type MessageEvent,
  type NestInterceptor,
} from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { WithLock } from 'nestjs-holdfast';
import { defer, mergeMap, Observable, Subject } from 'rxjs';
import { deferred, eventually, until, type Deferred } from '../support/eventually.js';
import { Gate } from './gate.js';
import {
  ADAPTERS,
  closeHttpApps,
  CONFLICT,
  startHttpApp,
  STREAMS_ITERABLES,
  type HttpApp,
} from './http-app.js';

const FILES = ['file', 'raw-file', 'file-observable'];
const GENERATORS = STREAMS_ITERABLES ? ['generator', 'raw-generator'] : [];

let gate: Gate;
let events: Subject<string>;
let stopped: Deferred<void>;
let cleanedUp: Deferred<boolean>;
/** What the last file reads from. */
let source: Readable;
/** How often an object of the application was destroyed: no stream, but what an ORM calls its row. */
let destroyed: number;
let app: HttpApp;

async function* chunks(): AsyncGenerator<string> {
  yield 'first ';
  await gate.pass();
  yield 'last';
}

/** What both adapters' responses can do. */
interface AnyResponse {
  readonly raw?: ServerResponse;
  header(name: string, value: string): unknown;
  send(body: string): unknown;
  hijack?(): unknown;
}

/** Sends the beginning of a response. */
function begin(response: AnyResponse): ServerResponse {
  response.hijack?.();
  const raw = response.raw ?? (response as unknown as ServerResponse);
  raw.write('first ');
  return raw;
}

/** Makes a file of the answer, in a while. */
class LateFiles implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(mergeMap(lateFile));
  }
}

async function lateFile(): Promise<StreamableFile> {
  source = Readable.from(chunks());
  await gate.pass();
  return new StreamableFile(source);
}

@Controller()
class Responses {
  @Get('file/:id')
  @WithLock('a:<id>')
  async file(@Param('id') id: string): Promise<StreamableFile> {
    return new StreamableFile(Readable.from(chunks()), { type: `text/${id}` });
  }

  @Get('raw-file/:id')
  @WithLock('a:<request.params.id>')
  async rawFile(): Promise<StreamableFile> {
    return new StreamableFile(Readable.from(chunks()));
  }

  @Get('file-observable/:id')
  @WithLock('a:<id>', { returns: 'observable' })
  fileObservable(@Param('id') id: string): Observable<StreamableFile> {
    return defer(() => this.file(id));
  }

  /** Fastify sends it; Express does not. */
  @Get('fetched/:id')
  @WithLock('a:<_id>')
  async fetched(@Param('id') _id: string): Promise<Response> {
    return new Response(ReadableStream.from(chunks()).pipeThrough(new TextEncoderStream()));
  }

  @Get('generator/:id')
  @Header('content-type', 'text/plain')
  @WithLock('a:<id>')
  async *generator(@Param('id') id: string): AsyncGenerator<string> {
    try {
      yield* chunks();
      yield id;
    } finally {
      cleanedUp.resolve((await app.locks.inspect('a:1')).held);
    }
  }

  @Get('raw-generator/:id')
  @Header('content-type', 'text/plain')
  @WithLock('a:<request.params.id>')
  async *rawGenerator(): AsyncGenerator<string> {
    yield* chunks();
  }

  @Get('res/:id')
  @WithLock('a:<id>')
  async res(@Param('id') id: string, @Res() response: AnyResponse): Promise<void> {
    void gate.pass().then(() => response.send(`first last${id}`));
  }

  @Get('returned-res/:id')
  @WithLock('a:<id>')
  async returnedRes(@Param('id') id: string, @Res() response: AnyResponse): Promise<AnyResponse> {
    void gate.pass().then(() => response.send(`first last${id}`));
    return response;
  }

  @Get('next/:id')
  @WithLock('a:<id>')
  async next(
    @Param('id') id: string,
    @Next() _next: unknown,
    @Req() { res }: { readonly res: AnyResponse },
  ): Promise<void> {
    void gate.pass().then(() => res.send(`first last${id}`));
  }

  @Get('valued-res/:id')
  @WithLock('a:<id>')
  async valuedRes(@Param('id') id: string, @Res() response: AnyResponse): Promise<unknown> {
    const raw = begin(response);
    void gate.pass().then(() => raw.end(`last${id}`));
    return { destroy: () => (destroyed += 1) };
  }

  @Get('working-res/:id')
  @WithLock('a:<id>')
  async workingRes(@Param('id') id: string, @Res() response: AnyResponse): Promise<void> {
    const raw = begin(response);
    await gate.pass();
    (app.locks.current()?.signal as AbortSignal).throwIfAborted();
    raw.end(`last${id}`);
  }

  @Get('careless-res/:id')
  @WithLock('a:<id>')
  async carelessRes(@Param('id') id: string, @Res() response: AnyResponse): Promise<void> {
    const raw = begin(response);
    events.subscribe(() => raw.end(`last${id}`));
    await gate.pass();
  }

  @Get('late-file/:id')
  @WithLock('a:<_id>')
  async lateFile(@Param('id') _id: string): Promise<StreamableFile> {
    return lateFile();
  }

  @Get('intercepted-file/:id')
  @UseInterceptors(LateFiles)
  @WithLock('a:<id>')
  async interceptedFile(@Param('id') id: string): Promise<string> {
    return id;
  }

  @Get('passthrough/:id')
  @WithLock('a:<id>')
  async passthrough(
    @Param('id') id: string,
    @Res({ passthrough: true }) response: AnyResponse,
  ): Promise<void> {
    response.header('x-id', id);
  }

  @Sse('events/:id')
  @WithLock('a:<id>', { returns: 'observable' })
  events(@Param('id') id: string): Observable<MessageEvent> {
    return new Observable((subscriber) => {
      void gate.pass();
      subscriber.next({ data: `for ${id}` });
      const inner = events.subscribe({
        next: (data) => subscriber.next({ data }),
        complete: () => subscriber.complete(),
      });
      return () => {
        inner.unsubscribe();
        stopped.resolve();
      };
    });
  }

  @Get('work/:id')
  @WithLock('a:<id>')
  async work(@Param('id') id: string): Promise<string> {
    await gate.pass();
    return id;
  }

  @Get('observable/:id')
  @WithLock('a:<id>', { returns: 'observable' })
  observable(@Param('id') id: string): Observable<string> {
    return defer(() => this.working(id));
  }

  @Get('endless/:id')
  // Renewed before that: a pause of the machine must not be longer than two thirds of the TTL.
  @WithLock('a:<_id>', { returns: 'observable', ttl: '1s', maxHold: '1500ms' })
  endless(@Param('id') _id: string): Observable<never> {
    return new Observable(() => {
      void gate.pass();
      return () => {
        stopped.resolve();
      };
    });
  }

  @Get('waiting/:id')
  @WithLock('a:<id>', { wait: '20s' })
  async waiting(@Param('id') id: string): Promise<string> {
    return this.working(id);
  }

  @Get('raw-waiting/:id')
  @WithLock('a:<request.params.id>', { wait: '20s' })
  async rawWaiting(@Param('id') id: string): Promise<string> {
    return this.working(id);
  }

  private async working(id: string): Promise<string> {
    await gate.pass();
    return id;
  }
}

beforeEach(() => {
  gate = new Gate();
  events = new Subject();
  stopped = deferred();
  cleanedUp = deferred();
  destroyed = 0;
});
afterEach(closeHttpApps);

describe.each(ADAPTERS)('the lock of a handler, on %s', (adapter) => {
  /** Every response, as it begins. */
  let responses: ServerResponse[];
  /** What has ended, in its order: locks, and responses. */
  let order: string[];
  const start = async (): Promise<HttpApp> => {
    responses = [];
    order = [];
    return (app = await startHttpApp(
      { controllers: [Responses] },
      {
        adapter,
        configure: (nest) =>
          nest.use((_request: unknown, response: ServerResponse, next: () => void) => {
            responses.push(response);
            response.once('finish', () => void order.push('answered'));
            next();
          }),
      },
    ));
  };
  /** The answer of a handler that loses its lock while it works. */
  const lostAtWork = async (route: string): ReturnType<HttpApp['get']> => {
    await start();
    const answer = app.get(`/${route}/1`);
    await gate.reached;
    app.locks.lose('a:1');
    gate.open();
    return answer;
  };
  const releasedOf = ({ locks }: HttpApp): Promise<unknown> =>
    new Promise((resolve) => locks.on('released', resolve));

  const fetched = adapter === 'Fastify' ? ['fetched'] : [];
  // Only Express notes the response in the request.
  const next = adapter === 'Express' ? ['next'] : [];

  it.each([...FILES, ...fetched, ...GENERATORS, ...next, 'res', 'returned-res', 'valued-res'])(
    'stays to the end of a response that is streamed or sent by hand (%s)',
    async (route) => {
      const { get, locks } = await start();
      const released = releasedOf(app);
      const answer = get(`/${route}/1`);
      await gate.reached;
      const second = await get(`/${route}/1`);
      expect(second).toMatchObject({ status: 409, body: CONFLICT });
      expect(Number(second.retryAfter)).toBeGreaterThanOrEqual(1);
      expect((await locks.inspect('a:1')).held).toBe(true);
      gate.open();
      expect((await answer).body).toMatch(/^first last1?$/);
      await released;
      expect((await get(`/${route}/1`)).body).toMatch(/^first last1?$/);
    },
  );

  it.each([...FILES, ...fetched, ...GENERATORS, 'valued-res'])(
    'cuts a response off when it is lost: the client does not take it for whole (%s)',
    async (route) => {
      await start();
      const answer = app.get(`/${route}/1`);
      await gate.reached;
      await eventually(() => responses[0]!.headersSent); // by now, the lock is that of the response
      app.locks.lose('a:1');
      await expect(answer).rejects.toThrow();
      expect(destroyed).toBe(0);
      gate.open();
    },
  );

  it.each(['working-res', 'careless-res'])(
    'cuts a response off whose handler still works when it is lost (%s)',
    async (route) => {
      await expect(lostAtWork(route)).rejects.toThrow();
    },
  );

  it.each(['late-file', 'intercepted-file'])(
    'leaves no stream open that came after it was lost (%s)',
    async (route) => {
      expect(await lostAtWork(route)).toMatchObject({ status: 409, body: { code: 'LOCK_LOST' } });
      expect(source.destroyed).toBe(true);
    },
  );

  it.each(['file', ...GENERATORS, 'res'])(
    'is given back when the client goes away from a response (%s)',
    async (route) => {
      await start();
      const released = releasedOf(app);
      const client = new AbortController();
      const answer = app.get(`/${route}/1`, { signal: client.signal });
      await gate.reached;
      client.abort();
      await expect(answer).rejects.toThrow();
      // The step that works keeps the lock.
      if (route.includes('generator')) expect((await app.locks.inspect('a:1')).held).toBe(true);
      gate.open();
      await released;
      if (route === 'generator') expect(await cleanedUp.promise).toBe(true);
      expect((await app.get(`/${route}/1`)).status).toBe(200);
    },
  );

  const itStreams = STREAMS_ITERABLES ? it : it.skip;

  itStreams(
    'keeps the lock of an iteration while a step works, though its client has gone',
    async () => {
      const { get, locks } = await start();
      const released = releasedOf(app);
      const client = new AbortController();
      const answer = get('/generator/1', { signal: client.signal });
      await gate.reached;
      client.abort();
      await expect(answer).rejects.toThrow();
      for (let turn = 0; turn < 5; turn += 1) {
        expect((await get('/generator/1')).status).toBe(409);
      }
      expect((await locks.inspect('a:1')).held).toBe(true);
      gate.open();
      await released;
      expect(await cleanedUp.promise).toBe(true);
    },
  );

  it('is given back when a connection is cut on which the response waits behind others', async () => {
    const { url, locks } = await start();
    const released = new Promise<void>((resolve) =>
      locks.on('released', ({ keys }) => {
        if (keys.includes('a:2')) resolve();
      }),
    );
    const acquired = new Promise<void>((resolve) =>
      locks.on('acquired', ({ keys }) => {
        if (keys.includes('a:2')) resolve();
      }),
    );
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('GET /work/1 HTTP/1.1\r\nhost: x\r\n\r\nGET /file/2 HTTP/1.1\r\nhost: x\r\n\r\n');
    await acquired;
    socket.destroy();
    await released;
    gate.open();
  });

  it.each(['work', 'observable', 'waiting', 'raw-waiting'])(
    'is not waited for by a client that went away: the work goes on, and the lock with it (%s)',
    async (route) => {
      const { get } = await start();
      const released = releasedOf(app);
      const client = new AbortController();
      const answer = get(`/${route}/1`, { signal: client.signal });
      await gate.reached;
      const closed = until(responses[0]!, 'close');
      client.abort();
      await expect(answer).rejects.toThrow();
      await closed;
      expect((await get('/work/1')).status).toBe(409);
      expect(gate.visits).toBe(1);
      gate.open();
      await released;
      expect((await get(`/${route}/1`)).body).toBe(1);
    },
  );

  it('is kept by an Observable that outlives its client until maxHold at the most', async () => {
    const { get, locks, warnings } = await start();
    const lost = new Promise((resolve) => locks.on('lost', ({ reason }) => resolve(reason)));
    const client = new AbortController();
    const answer = get('/endless/1', { signal: client.signal });
    await gate.reached;
    client.abort();
    await expect(answer).rejects.toThrow();
    expect(await lost).toBe('max-hold');
    // Before Nest 12 nobody unsubscribes from it.
    if (STREAMS_ITERABLES) await stopped.promise;
    gate.open();
    expect((await get('/work/1')).status).toBe(200);
    expect(warnings).toHaveLength(1);
  });

  it.each(['waiting', 'raw-waiting'])(
    'is not waited for on behalf of clients that went away (%s)',
    async (route) => {
      const { get, locks, warnings } = await start();
      gate.open();
      const lock = await locks.acquire('a:1');
      const clients = Array.from({ length: 3 }, () => new AbortController());
      const answers = clients.map(({ signal }) => get(`/${route}/1`, { signal }));
      const gone = Promise.allSettled(answers);
      // They stand in line when a later request has been answered.
      while (responses.length < clients.length) await get('/passthrough/2');
      await get('/passthrough/2');
      const waiting = responses.filter(({ writableEnded }) => !writableEnded);
      expect(waiting).toHaveLength(clients.length);
      const closed = waiting.map((response) => until(response, 'close'));
      for (const client of clients) client.abort();
      await Promise.all(closed);
      await gone;
      const live = get(`/${route}/1`);
      await lock.release();
      expect((await live).body).toBe(1);
      expect(gate.visits).toBe(1);
      expect(warnings).toEqual([]);
    },
  );

  it('leaves no listener on a response when the wait for it is over', async () => {
    const { get } = await start();
    const listeners: number[] = [];
    for (const route of ['work', 'waiting', 'raw-waiting']) {
      gate = new Gate();
      const answer = get(`/${route}/1`);
      await gate.reached;
      listeners.push(responses.at(-1)!.listenerCount('close'));
      gate.open();
      await answer;
    }
    expect(new Set(listeners).size).toBe(1);
  });

  it('ends before the answer of a handler that only touched the response', async () => {
    const { get, locks } = await start();
    locks.on('released', () => void order.push('released'));
    for (let turn = 0; turn < 20; turn += 1) {
      const { status, headers } = await get('/passthrough/1');
      expect([status, headers.get('x-id')]).toEqual([200, '1']);
    }
    await eventually(() => order.length === 40);
    expect(new Set(order.filter((_event, index) => index % 2 === 0))).toEqual(
      new Set(['released']),
    );
  });

  it('stays to the end of server-sent events', async () => {
    const { get } = await start();
    const released = releasedOf(app);
    const answer = get('/events/1');
    await gate.reached;
    expect((await get('/events/1')).status).toBe(409);
    events.next('more');
    events.complete();
    await released;
    expect((await answer).body).toContain('data: for 1');
    expect((await answer).body).toContain('data: more');
  });

  it('is given back when the client of server-sent events goes away', async () => {
    const { get, locks } = await start();
    const released = releasedOf(app);
    const client = new AbortController();
    const answer = get('/events/1', { signal: client.signal });
    await gate.reached;
    client.abort();
    await expect(answer).rejects.toThrow();
    await stopped.promise;
    await released;
    expect((await locks.inspect('a:1')).held).toBe(false);
  });
});
