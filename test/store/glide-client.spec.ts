import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from 'nestjs-holdfast';
import { GlideSession } from '../../lib/store/redis/client/glide/glide-session.js';
import type {
  GlideClient,
  GlideConfiguration,
  OwnGlideClient,
} from '../../lib/store/redis/client/glide/glide-shape.js';
import { GlideCluster } from '../../lib/store/redis/client/glide/glide-cluster.js';
import { GlideSingle, type GlideMaker } from '../../lib/store/redis/client/glide/glide-single.js';
import { GlideSubscriber } from '../../lib/store/redis/client/glide/glide-subscriber.js';
import { redisSource } from '../../lib/store/redis/client/redis-location.js';
import { isReply } from '../../lib/store/redis/client/reply-errors.js';
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

/** A client of GLIDE that answers with what the test says. */
class FakeGlide implements OwnGlideClient {
  readonly asked: string[][] = [];
  readonly passwords: string[] = [];
  isClosed = false;
  answer: (args: string[]) => unknown = () => 'OK';

  async customCommand(args: string[]): Promise<unknown> {
    this.asked.push(args);
    return this.answer(args);
  }

  close(): void {
    this.isClosed = true;
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
  const maker: GlideMaker = { create, createSubscriber: create, events: NO_EVENTS, runtime };
  return { maker, runtime, made: () => made };
}

const HALVES = [
  [0, 8_191, ['a', 7_000]],
  [8_192, 16_383, ['b', 7_001]],
];

async function clusterOf(...clients: readonly FakeGlide[]) {
  for (const client of clients) client.answer = ([name]) => (name === 'cluster' ? HALVES : 'OK');
  const { maker, made } = making(...clients);
  const cluster = new GlideCluster({ ...maker, mend: async () => undefined });
  return { cluster, made };
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
});

describe('a client of one server, with GLIDE,', () => {
  it('finds the keys of a command', () => {
    const client = new GlideSingle(making().maker);
    expect(client.keysIn(['mset', 'a', 1, 'b', 2])).toEqual(['a', 'b']);
  });

  it('connects again when it is to', async () => {
    const [first, second] = [new FakeGlide(), new FakeGlide()];
    const { maker, runtime } = making(first, second);
    const client = new GlideSingle(maker);
    client.connect();
    await settled();
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
    const { maker, runtime, made } = making(client, looking.promise);
    const single = new GlideSingle(maker);
    single.connect();
    await settled();
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
    const { cluster } = await clusterOf(new FakeGlide());
    expect(cluster.masters()).toStrictEqual([]);
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
    const { cluster } = await clusterOf(client);
    cluster.connect();
    await settled();
    cluster.masters()[0]?.disconnect();
    expect(client.isClosed).toBe(true);
    expect(cluster.state).toBe('connecting');
    cluster.disconnect();
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
    this.answer = ([name]) => (name === 'cluster' ? HALVES : 'OK');
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

  it.each([-1, 1.5, NaN])('may not name the database %j', (databaseId) => {
    const given = (): unknown => sourceOf(new ApplicationClient({ databaseId }));
    expect(given).toThrow(LockConfigurationError);
    expect(given).toThrow(`names the database ${String(databaseId)} of h:7000`);
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
