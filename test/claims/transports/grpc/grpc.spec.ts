import { fileURLToPath } from 'node:url';
import {
  credentials,
  loadPackageDefinition,
  Metadata,
  status,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientUnaryCall,
  type ClientWritableStream,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually, until } from '../../../support/eventually.js';
import { freePort } from '../../../support/free-port.js';
import { ChildApplication, START_LIMIT_MS } from '../support/child-application.js';

const SECRET = 's3cret';
const PROTO = fileURLToPath(new URL('./orders.proto', import.meta.url));

interface Order {
  readonly id: string;
}

interface Answer {
  readonly text: string;
}

type Callback = (error: ServiceError | null, answer?: Answer) => void;
type Unary = (order: Order, options: { deadline?: number }, callback: Callback) => ClientUnaryCall;

interface OrdersClient {
  readonly pay: Unary;
  readonly payInLine: Unary;
  readonly mistaken: Unary;
  readonly down: Unary;
  readonly work: Unary;
  talk(): ClientDuplexStream<Order, Answer>;
  watch(order: Order): ClientReadableStream<Answer>;
  watchIfFree(order: Order): ClientReadableStream<Answer>;
  talkIfFree(): ClientDuplexStream<Order, Answer>;
  collect(callback: Callback): ClientWritableStream<Order>;
  chat(): ClientDuplexStream<Order, Answer>;
  echo(metadata: Metadata): ClientDuplexStream<Order, Answer>;
  echoInside(metadata: Metadata): ClientDuplexStream<Order, Answer>;
  echoRetried(metadata: Metadata): ClientDuplexStream<Order, Answer>;
  gather(metadata: Metadata, callback: Callback): ClientWritableStream<Order>;
  add(metadata: Metadata, callback: Callback): ClientWritableStream<Order>;
  close(): void;
}

interface Outcome {
  readonly error?: ServiceError | undefined;
  readonly answer?: Answer | undefined;
}

describe('gRPC', () => {
  let app: ChildApplication;
  let client: OrdersClient;

  const orderOf = (id: string): Order => ({ id });

  const ask = (
    method: 'pay' | 'payInLine' | 'mistaken' | 'down' | 'work',
    id: string,
    options = {},
  ): { readonly call: ClientUnaryCall; readonly outcome: Promise<Outcome> } => {
    let call!: ClientUnaryCall;
    const outcome = new Promise<Outcome>((resolve) => {
      call = client[method](orderOf(id), options, (error, answer) => {
        resolve({ error: error ?? undefined, answer });
      });
    });
    return { call, outcome };
  };

  const failureOf = async (stream: ClientReadableStream<Answer>): Promise<ServiceError> => {
    const failed = until(stream, 'error');
    stream.resume();
    return (await failed)[0] as ServiceError;
  };

  const expectRefusal = (error: ServiceError | undefined): void => {
    expect(error).toMatchObject({
      code: status.ABORTED,
      details: 'Somebody else is working on this right now. Try again later.',
    });
    expect(error?.metadata.get('lock-error-code')).toEqual(['LOCK_NOT_ACQUIRED']);
    const [retryAfterMs] = error?.metadata.get('retry-after-ms') ?? [];
    expect(Number(retryAfterMs)).toBeGreaterThan(0);
    expect(JSON.stringify(error)).not.toContain(SECRET);
  };

  const notes = async (id: string): Promise<readonly string[]> =>
    ((await app.ask('notes')) as readonly string[]).filter((note) => note.endsWith(` ${id}`));
  const isFree = async (id: string): Promise<boolean> =>
    (await app.ask('is-held', `order:${id}`)) === false;

  beforeAll(async () => {
    const url = `127.0.0.1:${String(await freePort())}`;
    app = await ChildApplication.start(new URL('./application.ts', import.meta.url), [PROTO, url]);
    const { orders } = loadPackageDefinition(loadSync(PROTO)) as unknown as {
      orders: { Orders: new (url: string, credentials: unknown) => OrdersClient };
    };
    client = new orders.Orders(url, credentials.createInsecure());
  }, START_LIMIT_MS);
  afterAll(async () => {
    client.close();
    await app.close();
  });

  it('answers a refused unary call with ABORTED, the code and when to ask again', async () => {
    expect(await ask('pay', SECRET).outcome).toMatchObject({ answer: { text: 'paid 6' } });
    await app.ask('hold', `order:${SECRET}`);
    const { error } = await ask('pay', SECRET).outcome;
    await app.ask('release', `order:${SECRET}`);
    expectRefusal(error);
  });

  it('answers refused streams of the server, of the client and of both in the same way', async () => {
    await app.ask('hold', `order:${SECRET}`);
    expectRefusal(await failureOf(client.watch(orderOf(SECRET))));
    const collected = await new Promise<ServiceError | null>((resolve) => {
      client.collect((error) => resolve(error)).end(orderOf(SECRET));
    });
    expectRefusal(collected ?? undefined);
    const chat = client.chat();
    chat.end(orderOf(SECRET));
    expectRefusal(await failureOf(chat));
    await app.ask('release', `order:${SECRET}`);
  });

  it('answers a stream that is skipped with an empty one, of the server and of both', async () => {
    const texts = async (stream: unknown): Promise<readonly string[]> => {
      const received: string[] = [];
      for await (const { text } of stream as AsyncIterable<Answer>) received.push(text);
      return received;
    };
    const talked = (): Promise<readonly string[]> => {
      const talk = client.talkIfFree();
      talk.end(orderOf('4'));
      return texts(talk);
    };
    await app.ask('hold', 'order:4');
    expect(await texts(client.watchIfFree(orderOf('4')))).toEqual([]);
    await app.ask('release', 'order:4');
    expect(await texts(client.watchIfFree(orderOf('4')))).toEqual(['watched 4']);
    await app.ask('hold', 'talk');
    expect(await talked()).toEqual([]);
    await app.ask('release', 'talk');
    expect(await talked()).toEqual(['4']);
  });

  const expectLoss = (error: ServiceError | undefined): void => {
    expect(error).toMatchObject({
      code: status.ABORTED,
      details: expect.stringMatching(/^The lock was lost while the work ran/),
    });
    expect(error?.metadata.get('lock-error-code')).toEqual(['LOCK_LOST']);
    expect(JSON.stringify(error)).not.toContain(SECRET);
  };

  it('answers an outage at a decorated handler with UNAVAILABLE', async () => {
    const { error } = await app.duringOutage(() => ask('pay', SECRET).outcome);
    expect(error).toMatchObject({ code: status.UNAVAILABLE });
    expect(error?.metadata.get('retry-after-ms')).toEqual(['1000']);
    expect(JSON.stringify(error)).not.toContain(SECRET);
  });

  it('answers a loss with ABORTED and its own code, also in a stream', async () => {
    const { error } = await app.losing(`order:${SECRET}`, () => ask('work', SECRET).outcome);
    expectLoss(error);
    expectLoss(await app.losing(`order:${SECRET}`, () => failureOf(client.watch(orderOf(SECRET)))));
  });

  it('answers a call that a newer one replaced with ABORTED and its own code, also in a stream', async () => {
    const key = `order:${SECRET}`;
    const { error } = await app.replacing(key, () => ask('work', SECRET).outcome);
    const streamed = await app.replacing(key, () => failureOf(client.watch(orderOf(SECRET))));
    for (const each of [error, streamed]) {
      expect(each?.code).toBe(status.ABORTED);
      expect(each?.details).toBe('A newer request has taken the place of this one.');
      expect(each?.metadata.get('lock-error-code')).toEqual(['LOCK_REPLACED']);
      expect(each?.metadata.get('retry-after-ms')).toEqual([]);
    }
  });

  const tenant = (name: string): Metadata => {
    const metadata = new Metadata();
    metadata.set('tenant', name);
    return metadata;
  };

  const send = (stream: ClientWritableStream<Order>, ids: readonly string[]): void => {
    for (const id of ids) stream.write(orderOf(id));
    stream.end();
  };

  describe.each(['echo', 'echoInside', 'echoRetried'] as const)(
    'a stream of both: %s',
    (method) => {
      const echoed = async (name: string, ids: readonly string[]): Promise<readonly string[]> => {
        const stream = client[method](tenant(name));
        send(stream, ids);
        const texts: string[] = [];
        for await (const { text } of stream as AsyncIterable<Answer>) texts.push(text);
        return texts;
      };

      it('gets every message of its client', async () => {
        expect(await echoed('free', ['1', '2', '3'])).toEqual(['1', '2', '3']);
      });

      it('gets those that its client sent and ended before the grant', async () => {
        await app.ask('hold', 'tenant:busy');
        const before = (await notes('stream')).length;
        const answered = echoed('busy', ['1', '2', '3']);
        if (method === 'echoRetried')
          await eventually(async () => (await notes('stream')).length > before);
        else await ask('pay', 'another').outcome;
        await app.ask('release', 'tenant:busy');
        expect(await answered).toEqual(['1', '2', '3']);
      });
    },
  );

  describe.each(['gather', 'add'] as const)('a stream of the client: %s', (method) => {
    const gathered = (name: string, ids: readonly string[]): Promise<string | undefined> =>
      new Promise((resolve, reject) => {
        const stream = client[method](tenant(name), (error, answer) => {
          if (error === null) resolve(answer?.text);
          else reject(error);
        });
        send(stream, ids);
      });

    it('gets every message of its client', async () => {
      expect(await gathered('free', ['1', '2', '3'])).toBe('1,2,3');
    });

    it('gets those that its client sent and ended before the grant', async () => {
      const key = method === 'gather' ? 'gather' : 'tenant:busy';
      await app.ask('hold', key);
      const answered = gathered('busy', ['1', '2', '3']);
      await ask('pay', 'another').outcome;
      await app.ask('release', key);
      expect(await answered).toBe('1,2,3');
    });
  });

  it('a stream of both that is cancelled in line leaves it', async () => {
    await app.ask('hold', 'talk');
    const waiting = client.talk();
    waiting.on('error', () => undefined);
    waiting.write(orderOf('1'));
    await ask('pay', 'another').outcome;
    waiting.cancel();
    await ask('pay', 'another').outcome;
    await app.ask('release', 'talk');
    const talk = client.talk();
    talk.end(orderOf('2'));
    expect(await until(talk, 'data')).toEqual([{ text: '2' }]);
    await until(talk, 'end');
    expect(await notes('talk')).toEqual(['began talk']);
    expect(await app.ask('is-held', 'talk')).toBe(false);
  });

  it('answers an outage with UNAVAILABLE, and a fault of the application with INTERNAL', async () => {
    const down = (await ask('down', SECRET).outcome).error;
    expect(down).toMatchObject({
      code: status.UNAVAILABLE,
      details: 'The lock store is not available. Try again later.',
    });
    expect(down?.metadata.get('retry-after-ms')).toEqual(['1000']);
    expect(JSON.stringify(down)).not.toContain('10.0.0.7');
    const mistaken = (await ask('mistaken', SECRET).outcome).error;
    expect(mistaken).toMatchObject({ code: status.INTERNAL, details: 'Internal server error' });
    expect(mistaken?.metadata.get('retry-after-ms')).toEqual([]);
    // What it prints comes another way than its answer.
    await eventually(() => {
      expect(app.log).toContain(`"order:${SECRET}", "other" is requested inside a section`);
    });
  });

  it('answers a bad value of the request with INVALID_ARGUMENT', async () => {
    const { error } = await ask('pay', '').outcome;
    expect(error).toMatchObject({ code: status.INVALID_ARGUMENT });
    expect(error?.metadata.get('lock-error-code')).toEqual(['LOCK_KEY_INVALID']);
  });

  it.each([
    ['is cancelled', '1', (call: ClientUnaryCall) => call.cancel(), {}],
    ['reaches its deadline', '2', () => undefined, { deadline: 500 }],
  ])(
    'a call that %s leaves the line',
    async (_how, id, end, { deadline }: { deadline?: number }) => {
      await app.ask('hold', `order:${id}`);
      const options = deadline === undefined ? {} : { deadline: Date.now() + deadline };
      const { call, outcome } = ask('payInLine', id, options);
      // What was asked for earlier on the same connection has begun.
      await ask('pay', 'another').outcome;
      end(call);
      expect((await outcome).error?.code).toBe(
        deadline === undefined ? status.CANCELLED : status.DEADLINE_EXCEEDED,
      );
      await ask('pay', 'another').outcome;
      await app.ask('release', `order:${id}`);
      expect(await ask('pay', id).outcome).toMatchObject({ answer: { text: 'paid 1' } });
      expect(await notes(id)).toEqual([`asked ${id}`]);
    },
  );

  it('a stream of the server ends, and its lock with it, when its client cancels it', async () => {
    const stream = client.watch(orderOf('3'));
    stream.on('error', () => undefined);
    await until(stream, 'data');
    expect(await isFree('3')).toBe(false);
    stream.cancel();
    await eventually(() => isFree('3'));
    expect(await notes('3')).toEqual(['left 3']);
  });
});
