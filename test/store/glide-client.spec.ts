import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from 'nestjs-holdfast';
import { GlideServer } from '../../lib/store/redis/client/glide/glide-server.js';
import { GlideSession } from '../../lib/store/redis/client/glide/glide-session.js';
import type {
  GlideClient,
  GlideConfiguration,
  GlideMessage,
  OwnGlideClient,
  Route,
} from '../../lib/store/redis/client/glide/glide-shape.js';
import { GlideCluster } from '../../lib/store/redis/client/glide/glide-cluster.js';
import { GlideSingle, type GlideMaker } from '../../lib/store/redis/client/glide/glide-single.js';
import { GlideSubscriber } from '../../lib/store/redis/client/glide/glide-subscriber.js';
import { isLocatedClient, redisSource } from '../../lib/store/redis/client/redis-location.js';
import { CLOSED, isReply } from '../../lib/store/redis/client/reply-errors.js';
import { deferred } from '../support/eventually.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';

const ignore = (): void => undefined;
const NO_EVENTS = {
  ...{ onConnect: ignore, onReady: ignore, onError: ignore },
  ...{ onClose: ignore, onEnd: ignore, onSlots: ignore },
};

/** What no reply ever comes to. */
const SILENCE = new Promise<never>(() => undefined);

const broken = (): Error => Object.assign(new Error('gone'), { name: 'ConnectionError' });
const refusal = (): Error => new Error('NOPERM: this user has no permissions');

const HALVES = [
  [0, 8_191, ['a', 7_000]],
  [8_192, 16_383, ['b', 7_001]],
];

/** A client of GLIDE that answers with what the test says. */
class FakeGlide implements OwnGlideClient {
  readonly asked: string[][] = [];
  readonly routes: (Route | undefined)[] = [];
  readonly passwords: string[] = [];
  closes = 0;
  /** Of a Cluster. */
  slots: unknown = HALVES;
  answer: (args: string[]) => unknown = ([name]) => (name === 'cluster' ? this.slots : 'OK');

  get isClosed(): boolean {
    return this.closes > 0;
  }

  async customCommand(args: string[], { route }: { route?: Route } = {}): Promise<unknown> {
    this.asked.push(args);
    this.routes.push(route);
    return this.answer(args);
  }

  close(): void {
    this.closes += 1;
  }

  async subscribe(): Promise<void> {
    await this.answer(['subscribe']);
  }

  async updateConnectionPassword(password: string): Promise<void> {
    this.passwords.push(password);
  }
}

/** Clients that are made one after the other. */
function making(...clients: readonly (FakeGlide | Promise<FakeGlide>)[]) {
  const left = [...clients];
  const runtime = new VirtualRuntime();
  let made = 0;
  const create = async (): Promise<FakeGlide> => {
    made += 1;
    return left.shift() ?? SILENCE;
  };
  const errors: string[] = [];
  const events = { ...NO_EVENTS, onError: (message: string) => errors.push(message) };
  const maker: GlideMaker = { create, createSubscriber: create, events, runtime };
  return { maker, runtime, errors, made: () => made };
}

/** A client of one server that is connected. */
async function connected(...clients: readonly (FakeGlide | Promise<FakeGlide>)[]) {
  const { maker, runtime, made } = making(...clients);
  const client = new GlideSingle(maker);
  client.connect();
  await settled();
  return { client, runtime, made };
}

function clusterOf(client: FakeGlide, mend: () => Promise<void> = async () => undefined) {
  const { maker, errors } = making(client);
  return { cluster: new GlideCluster({ ...maker, mend }), errors };
}

async function connectedCluster(...of: Parameters<typeof clusterOf>) {
  const made = clusterOf(...of);
  made.cluster.connect();
  await settled();
  return made;
}

describe('a session of GLIDE', () => {
  it('waits while WAIT, and nothing else, has no reply', async () => {
    const client = new FakeGlide();
    const session = new GlideSession(client, { onRefused: ignore, onBroken: ignore });
    await session.send(['get', 'a']);
    expect(session.isWaiting).toBe(false);
    for (const end of ['reply', 'error']) {
      const reply = deferred<number>();
      client.answer = () => reply.promise;
      const waiting = session.send(['wait', '1', '100']);
      expect(session.isWaiting).toBe(true);
      if (end === 'reply') reply.resolve(1);
      else reply.reject(refusal());
      await Promise.allSettled([waiting]);
      expect(session.isWaiting).toBe(false);
    }
    client.answer = () => SILENCE;
    void session.send(['get', 'a']);
    expect(session.isWaiting).toBe(false);
    expect(session.isBusy).toBe(true);
  });

  it.each<[string, Error, string, object]>([
    [
      'a refusal',
      refusal(),
      'NOPERM this user has no permissions',
      { refused: 1, broken: 0, replies: 1 },
    ],
    [
      'a refusal without a text',
      new Error('An error was signalled by the server: - BusyLoadingError'),
      'LOADING',
      { refused: 1, broken: 0, replies: 1 },
    ],
    ['a broken connection', broken(), CLOSED, { refused: 0, broken: 1, replies: 0 }],
    [
      'a closed client',
      Object.assign(new Error('closed'), { name: 'ClosingError' }),
      CLOSED,
      { refused: 0, broken: 1, replies: 0 },
    ],
    ['any other error', new Error('timed out'), 'timed out', { refused: 0, broken: 0, replies: 0 }],
  ])('tells %s from other failures', async (_, error, message, expected) => {
    const client = new FakeGlide();
    let [refused, gone] = [0, 0];
    const session = new GlideSession(client, {
      onRefused: () => (refused += 1),
      onBroken: () => (gone += 1),
    });
    client.answer = () => Promise.reject(error);
    const failure: unknown = await session.send(['get', 'a']).catch((e: unknown) => e);
    await settled();
    expect((failure as Error).message).toBe(message);
    expect({ refused, broken: gone, replies: session.replies }).toEqual(expected);
  });

  it('that ends fails what it has not sent, and sends nothing after that', async () => {
    const client = new FakeGlide();
    const reply = deferred<string>();
    client.answer = () => reply.promise;
    const session = new GlideSession(client, { onRefused: ignore, onBroken: ignore });
    const sent = Array.from({ length: 100 }, () => session.send(['get', 'a']));
    const outcomes = Promise.allSettled(sent);
    const before = client.asked.length;
    session.end();
    session.end();
    await expect(session.send(['get', 'b'])).rejects.toThrow(CLOSED);
    reply.resolve('value');
    const fulfilled = (await outcomes).filter(({ status }) => status === 'fulfilled');
    expect(before).toBeLessThan(100);
    expect(fulfilled).toHaveLength(before);
    expect(client.asked).toHaveLength(before);
    expect(client.closes).toBe(1);
  });
});

describe('a client of one server, with GLIDE,', () => {
  it('finds the keys of a command', () => {
    const client = new GlideSingle(making().maker);
    expect(client.keysIn(['mset', 'a', 1, 'b', 2])).toEqual(['a', 'b']);
  });

  it('has no masters of slots, and no sharded channels', () => {
    const client = new GlideSingle(making().maker);
    expect(client.masters()).toStrictEqual([]);
    expect(client.hasShardedChannels).toBe(false);
  });

  it('connects once, however often it is to', async () => {
    const { client, made } = await connected(new FakeGlide(), new FakeGlide());
    client.connect();
    await settled();
    expect(made()).toBe(1);
    client.disconnect();
  });

  it('leaves a replica, which refuses to write, and stays where it is refused otherwise', async () => {
    const [first, second] = [new FakeGlide(), new FakeGlide()];
    const { client, runtime } = await connected(first, second);
    first.answer = () => Promise.reject(refusal());
    await expect(client.command('get', 'a')).rejects.toThrow('NOPERM');
    expect([client.state, first.isClosed]).toEqual(['ready', false]);
    first.answer = () =>
      Promise.reject(new Error('An error was signalled by the server: - ReadOnly: a replica'));
    await expect(client.command('set', 'a', 1)).rejects.toThrow('READONLY a replica');
    await settled();
    expect([client.state, first.isClosed]).toEqual(['connecting', true]);
    await runtime.advance(1_000);
    expect(client.state).toBe('ready');
    client.disconnect();
  });

  it('pings while it is not used, and is replaced where that shows that the connection broke', async () => {
    const [first, second] = [new FakeGlide(), new FakeGlide()];
    const { client, runtime } = await connected(first, second);
    await runtime.advance(10_000);
    expect(first.asked.length).toBeGreaterThan(3);
    expect(new Set(first.asked.flat())).toEqual(new Set(['ping']));
    first.answer = () => Promise.reject(broken());
    await runtime.advance(3_000);
    expect([client.state, first.isClosed, second.isClosed]).toEqual(['ready', true, false]);
    client.disconnect();
    expect(runtime.timers).toBe(0);
  });

  it('connects again when it is to', async () => {
    const [first, second] = [new FakeGlide(), new FakeGlide()];
    const { client, runtime } = await connected(first, second);
    client.reconnect();
    expect(first.isClosed).toBe(true);
    expect(client.state).toBe('connecting');
    await runtime.advance(1_000);
    expect(client.state).toBe('ready');
    expect(second.isClosed).toBe(false);
    client.disconnect();
  });

  it('looks again and again at a server that owes a reply', async () => {
    const [client, other] = [new FakeGlide(), new FakeGlide()];
    const looking = deferred<FakeGlide>();
    const { client: single, runtime, made } = await connected(client, looking.promise);
    const late = deferred<string>();
    client.answer = ([name]) => (name === 'get' ? late.promise : SILENCE);
    const got = single.command('get', 'a');
    void single.command('blpop', 'b', 0).catch(ignore);
    await runtime.advance(300);
    expect(made()).toBe(2);
    late.resolve('value'); // the present client was faster than the new one
    expect(await got).toBe('value');
    looking.resolve(other);
    await settled();
    expect(other.isClosed).toBe(true);
    expect(client.isClosed).toBe(false);
    await runtime.advance(300);
    expect(made()).toBe(3);
    single.disconnect();
  });
});

describe('a client of a Cluster, with GLIDE,', () => {
  it('knows no masters before it is ready, and then those of all slots', async () => {
    const { cluster } = clusterOf(new FakeGlide());
    expect(cluster.masters()).toStrictEqual([]);
    expect(cluster.ownerOf(0)).toBeUndefined();
    cluster.connect();
    await settled();
    expect(cluster.masters().map(({ address }) => address)).toEqual(['a:7000', 'b:7001']);
    expect([cluster.ownerOf(0), cluster.ownerOf(16_383)]).toEqual(['a:7000', 'b:7001']);
    expect(cluster.keysIn(['mget', 'a', 'b'])).toEqual(['a', 'b']);
    cluster.disconnect();
    expect(cluster.masters()).toStrictEqual([]);
  });

  it('replaces all connections to end that of one master', async () => {
    const client = new FakeGlide();
    const { cluster } = await connectedCluster(client);
    cluster.masters()[0]?.disconnect();
    expect(client.isClosed).toBe(true);
    expect(cluster.state).toBe('connecting');
    cluster.disconnect();
  });

  it('knows no master of a slot without one, nor of those of a node without a name', async () => {
    const client = new FakeGlide();
    client.slots = [
      [1, 8_191, ['a', 7_000]],
      [8_192, 16_383, ['', 7_001]],
    ];
    const { cluster } = await connectedCluster(client);
    expect([0, 1, 8_192].map((slot) => cluster.ownerOf(slot))).toEqual([
      undefined,
      'a:7000',
      undefined,
    ]);
    expect(cluster.masters().map(({ address }) => address)).toEqual(['a:7000']);
    cluster.disconnect();
  });

  it('asks again where slots are, once at a time', async () => {
    const client = new FakeGlide();
    const { cluster } = await connectedCluster(client);
    for (const host of ['c', 'd']) {
      client.slots = [[0, 16_383, [host, 7_002]]];
      client.asked.length = 0;
      cluster.refreshSlots();
      cluster.refreshSlots();
      await settled();
      expect(client.asked).toEqual([['cluster', 'slots']]);
      expect(cluster.ownerOf(42)).toBe(`${host}:7002`);
    }
    cluster.disconnect();
  });

  it('sends a command to the master of its first key, and one without keys to any master', async () => {
    const client = new FakeGlide();
    const { cluster } = await connectedCluster(client);
    client.routes.length = 0;
    await cluster.command('mget', 'a', 'b');
    await cluster.masters()[1]?.command('ping');
    expect(client.routes).toEqual([
      { type: 'primarySlotKey', key: 'a' },
      { type: 'routeByAddress', host: 'b', port: 7_001 },
    ]);
    client.routes.length = 0;
    await Promise.all(Array.from({ length: 30 }, () => cluster.command('ping')));
    const ids = client.routes.map((route) => {
      const { type, id } = route as { type: string; id: number };
      expect(type).toBe('primarySlotId');
      expect(Number.isInteger(id) && id >= 0 && id < 16_384).toBe(true);
      return id;
    });
    expect(new Set(ids.map((id) => cluster.ownerOf(id)))).toEqual(new Set(['a:7000', 'b:7001']));
    cluster.disconnect();
  });

  it('leaves room for one master while another does not answer, and keeps the order of both', async () => {
    const client = new FakeGlide();
    const { cluster } = await connectedCluster(client);
    // The slot of "a" is in the second half, that of "b" in the first.
    const reply = deferred<string>();
    client.answer = ([, key]) => (key === 'b' ? reply.promise : 'OK');
    client.asked.length = 0;
    const count = (key: string): readonly number[] =>
      client.asked.flatMap(([, asked, , number]) => (asked === key ? [Number(number)] : []));
    const numbers = Array.from({ length: 100 }, (_, index) => index);
    const ask = (key: string): Promise<unknown> =>
      Promise.all(numbers.map((number) => cluster.command('set', key, 'value', number)));
    const silent = ask('b');
    const before = count('b').length;
    await ask('a');
    expect(count('a')).toEqual(numbers);
    expect(count('b')).toHaveLength(before);
    reply.resolve('OK');
    await silent;
    expect(count('b')).toEqual(numbers);
    cluster.disconnect();
  });

  it('keeps the order of the requests for a key while its slot moves to another master', async () => {
    const client = new FakeGlide();
    const { cluster } = await connectedCluster(client);
    const reply = deferred<string>();
    client.answer = ([name]) => (name === 'get' ? reply.promise : client.slots);
    const asked = Array.from({ length: 24 }, () => cluster.command('get', 'a'));
    asked.push(cluster.command('set', 'a', 'token'));
    client.slots = [[0, 16_383, ['c', 7_002]]];
    cluster.refreshSlots();
    await settled();
    asked.push(cluster.command('del', 'a'));
    reply.resolve('OK');
    await Promise.all(asked);
    expect(client.asked.slice(-2)).toEqual([
      ['set', 'a', 'token'],
      ['del', 'a'],
    ]);
    cluster.disconnect();
  });

  it('says why it cannot be used', async () => {
    const client = new FakeGlide();
    client.answer = () => Promise.reject(refusal());
    const { cluster, errors } = await connectedCluster(client);
    expect(errors).toEqual(['NOPERM this user has no permissions']);
    expect([cluster.state, client.isClosed]).toEqual(['connecting', true]);
    cluster.disconnect();
  });

  it('says each time what keeps it from logging in again', async () => {
    const client = new FakeGlide();
    const noToken = (): Promise<never> => Promise.reject(new Error('no token'));
    const { cluster, errors } = await connectedCluster(client, noToken);
    client.answer = () => Promise.reject(broken());
    for (const expected of [['no token'], ['no token', 'no token']]) {
      await expect(cluster.command('get', 'a')).rejects.toThrow(CLOSED);
      await settled();
      expect(errors).toEqual(expected);
    }
    expect(client.isClosed).toBe(false);
    cluster.disconnect();
  });
});

describe('a server, with GLIDE,', () => {
  /** Answers each connection as Redis does, with another client of GLIDE behind it. */
  async function serverOf(client: FakeGlide) {
    const server = createServer((socket) => {
      socket.on('error', ignore);
      socket.once('data', () => socket.end('+PONG\r\n'));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const at = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
    const opener = new GlideServer(async () => client, new VirtualRuntime());
    return {
      open: () =>
        opener.open({ addresses: [at, at] }).then(
          () => undefined,
          (error: unknown) => error as Error,
        ),
      close: async () => {
        server.close();
        await once(server, 'close');
      },
    };
  }

  it('is not one of several addresses that leads to a replica, or to where no server is', async () => {
    const client = new FakeGlide();
    const { open, close } = await serverOf(client);
    expect(await open()).toBeUndefined();
    expect(client.isClosed).toBe(false);
    client.answer = ([name]) => (name === 'info' ? 'role:slave' : 'OK');
    expect((await open())?.message).toBe('the server is a replica');
    expect(client.closes).toBe(2);
    await close();
    const failure = await open();
    expect(failure?.message).toContain('ECONNREFUSED');
    expect(failure?.cause).toMatchObject({ code: 'ECONNREFUSED' });
  });
});

describe('a subscriber with GLIDE', () => {
  async function listening(client = new FakeGlide()) {
    let ends = 0;
    const subscriber = new GlideSubscriber(async () => client, {
      ...{ onMessage: ignore, onError: ignore, onMoved: ignore },
      onEnd: () => {
        ends += 1;
      },
    });
    await subscriber.connect();
    await settled();
    client.asked.length = 0;
    return { subscriber, client, ends: () => ends };
  }

  it('has plain channels, and no sharded ones', async () => {
    const { subscriber } = await listening();
    await expect(subscriber.subscribe('channel', 'plain')).resolves.toBeUndefined();
    await expect(subscriber.subscribe('channel', 'sharded')).rejects.toThrow(
      'has no sharded channels',
    );
  });

  it('passes on what it hears until it has ended', async () => {
    const heard: string[] = [];
    let hear: (message: GlideMessage) => void = ignore;
    const subscriber = new GlideSubscriber(
      async (_signal, onMessage) => {
        hear = onMessage;
        return new FakeGlide();
      },
      {
        ...{ onError: ignore, onMoved: ignore, onEnd: ignore },
        onMessage: (message) => heard.push(message),
      },
    );
    await subscriber.connect();
    hear({ message: 'before' });
    subscriber.disconnect();
    hear({ message: 'after' });
    expect(heard).toEqual(['before']);
  });

  it('says what may be forbidden, and what GLIDE said as the cause', async () => {
    const { subscriber, client } = await listening();
    const cause = new Error('timed out');
    client.answer = () => Promise.reject(cause);
    const failed = await subscriber.subscribe('channel', 'plain').catch((e: unknown) => e);
    expect(failed).toMatchObject({ message: expect.stringMatching(/^no answer to SUBSCRIBE/) });
    expect((failed as Error).cause).toBe(cause);
  });

  it('pings, and stays where the reply is a refusal', async () => {
    const { subscriber, client, ends } = await listening();
    await subscriber.ping();
    expect(client.asked).toEqual([['ping']]);
    client.answer = () => Promise.reject(refusal());
    const refused = await subscriber.ping().catch((error: unknown) => error);
    expect(isReply(refused)).toBe(true);
    expect([subscriber.isReady, ends()]).toEqual([true, 0]);
  });

  it('ends where a ping has no reply', async () => {
    const { subscriber, client, ends } = await listening();
    client.answer = () => Promise.reject(broken());
    await expect(subscriber.ping()).rejects.toThrow('the connection closed');
    expect([subscriber.isReady, ends()]).toEqual([false, 1]);
    expect(client.isClosed).toBe(true);
  });
});

/** What an application hands over: a client that keeps its configuration, and of whose class others are made. */
class ApplicationClient extends FakeGlide {
  static readonly made: ApplicationClient[] = [];
  readonly config: GlideConfiguration;
  /** Versions from 2.4 on have it. */
  readonly getCacheHitRate = ignore;

  constructor(config: Partial<GlideConfiguration> = {}) {
    super();
    this.config = { addresses: [{ host: 'h', port: 7_000 }], ...config };
  }

  static async createClient(config: GlideConfiguration): Promise<OwnGlideClient> {
    const client = new this(config);
    this.made.push(client);
    return client;
  }
}

class ClusterClient extends ApplicationClient {
  static override readonly made: ApplicationClient[] = [];
  readonly fcallWithRoute = ignore;
}

describe('the configuration of a client of GLIDE', () => {
  const sourceOf = (client: GlideClient) => redisSource(client, new VirtualRuntime());

  it.each([0, 3])('may name the database %j', (databaseId) => {
    const { name, database } = sourceOf(new ApplicationClient({ databaseId }));
    expect([name, database]).toEqual(['h:7000', databaseId]);
  });

  it('names all addresses', () => {
    const addresses = [{ host: 'h', port: 7_000 }, { host: 'i' }] as const;
    expect(sourceOf(new ApplicationClient({ addresses })).name).toBe('h:7000, i:6379');
    expect(sourceOf(new ClusterClient({ addresses })).name).toBe('cluster h:7000, i:6379');
  });

  it.each([-1, 1.5, NaN])('may not name the database %j', (databaseId) => {
    const given = (): unknown => sourceOf(new ApplicationClient({ databaseId }));
    expect(given).toThrow(LockConfigurationError);
    expect(given).toThrow(`names the database ${String(databaseId)} of h:7000`);
  });

  it('may not name another database than 0 of a Cluster', () => {
    const given = (): unknown => sourceOf(new ClusterClient({ databaseId: 3 }));
    expect(given).toThrow(LockConfigurationError);
    expect(given).toThrow(/database 3 of the cluster h:7000.* by "keyPrefix"/);
  });

  it('does not decide how a Cluster names our connections, and how long a request may take', async () => {
    ClusterClient.made.length = 0;
    const configuration = { clientName: 'app', requestTimeout: 60_000 };
    const client = sourceOf(new ClusterClient(configuration)).connect(NO_EVENTS);
    client.connect();
    const events = { onMessage: ignore, onError: ignore, onMoved: ignore, onEnd: ignore };
    await settled();
    const subscriber = client.openSubscriber(events);
    await subscriber.connect();
    const own = { clientName: 'holdfast', requestTimeout: 1_000 };
    expect(ClusterClient.made.map(({ config }) => config)).toMatchObject([own, own]);
    subscriber.disconnect();
    client.disconnect();
  });

  it.each([
    ['is said again', { username: 'user', password: 'secret' }, ['secret']],
    ['is not said where there is none', { username: 'user' }, []],
    ['is not said where there are no credentials', undefined, []],
  ])(
    'has the password with which a Cluster is connected to again: it %s',
    async (_, credentials, passwords) => {
      ClusterClient.made.length = 0;
      const errors: string[] = [];
      const client = sourceOf(new ClusterClient({ credentials })).connect({
        ...NO_EVENTS,
        onError: (message) => errors.push(message),
      });
      client.connect();
      await settled();
      const [own] = ClusterClient.made;
      own!.answer = () => Promise.reject(broken());
      await client.command('get', 'a').catch(ignore);
      await settled();
      expect(own!.passwords).toEqual(passwords);
      expect(errors).toEqual([]);
      client.disconnect();
    },
  );
});

describe('an object is a client of GLIDE', () => {
  class Shaped {
    static readonly createClient = ignore;
    readonly customCommand = ignore;
    readonly close = ignore;
  }

  it.each<[string, object, boolean]>([
    ['where it has its shape', new Shaped(), true],
    ['but not without commands', Object.assign(new Shaped(), { customCommand: undefined }), false],
    ['but not where it cannot be closed', Object.assign(new Shaped(), { close: undefined }), false],
    ['but not where its class makes no others', { customCommand: ignore, close: ignore }, false],
  ])('%s', (_, value, isClient) => {
    expect(isLocatedClient(value)).toBe(isClient);
  });
});
