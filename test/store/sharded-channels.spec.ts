import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import { Cluster, Redis } from 'ioredis';
import { Channels, NotTheMaster } from '../../lib/store/redis/wakeups/channels.js';
import { RedisConnection, type Reply } from '../../lib/store/redis/client/redis-connection.js';
import { IoredisSubscriber } from '../../lib/store/redis/client/ioredis/ioredis-subscriber.js';
import type {
  SubscriberClient,
  SubscriberEvents,
} from '../../lib/store/redis/client/redis-client.js';
import { redisSource } from '../../lib/store/redis/client/redis-location.js';
import { deferred } from '../support/eventually.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { Scheduler } from '../../lib/time/scheduler.js';
import { RedisCluster } from '../support/redis-cluster.js';

let cluster: RedisCluster;
const closings: (() => unknown)[] = [];

beforeAll(async () => {
  cluster = await RedisCluster.start({ masters: 1, replicas: 1 });
}, 90_000);

afterEach(() => {
  for (const close of closings.splice(0).reverse()) close();
});

afterAll(async () => {
  await cluster.stop();
});

interface Parts {
  readonly channels: Channels;
  readonly connection: RedisConnection;
  /** What is asked now and then is asked when the test says so; Redis takes its time. */
  readonly runtime: VirtualRuntime;
  /** Resolves when they are heard no longer. */
  readonly gone: Promise<void>;
}

async function setUp(subscribeAt?: number): Promise<Parts> {
  const application = new Cluster(cluster.startupNodes, { lazyConnect: true });
  const runtime = new VirtualRuntime();
  const scheduler = new Scheduler(runtime);
  const source = redisSource(application, runtime);
  const connection = new RedisConnection(source, scheduler, {
    readsRun: false,
    onLost: () => undefined,
    onThere: () => undefined,
    onRefused: () => undefined,
    onSlots: () => undefined,
  });
  if (subscribeAt !== undefined) {
    const elsewhere = (events: SubscriberEvents): SubscriberClient =>
      new IoredisSubscriber(new Redis({ port: subscribeAt, lazyConnect: true }), events);
    jest.spyOn(connection.client, 'openSubscriber').mockImplementation(elsewhere);
  }
  const gone = deferred();
  const channels = new Channels('sharded', {
    source,
    connection,
    scheduler,
    timeLimitMs: 2_000,
    onMessage: () => undefined,
    onGone: gone.resolve,
  });
  closings.push(() => {
    channels.close();
    connection.close();
    application.disconnect();
  });
  await connection.ask(5_000, ({ client }) => client.command('get', 'key'));
  return { channels, connection, gone: gone.promise, runtime };
}

describe('channels of the slots of a Cluster', () => {
  it('are kept: a place in line names its own', async () => {
    const { channels } = await setUp();
    const slot = calculateSlot('a');
    let other = 0;
    while (calculateSlot(String(other)) !== slot) other += 1;
    await Promise.all([channels.add(slot, 'a'), channels.add(slot, String(other))]);
    const channel = channels.at(slot);
    expect(channel).toMatch(/^holdfast:.*:\{a\}$/);
    await channels.add(slot, String(other));
    expect(channels.at(slot)).toBe(channel);
  });

  it('are not heard at a replica: its master does not know who listens there', async () => {
    const [, replica] = cluster.nodes;
    const { channels } = await setUp(replica?.port);
    await expect(channels.open()).rejects.toBeInstanceOf(NotTheMaster);
  });

  it('are given up when their master is found not to know of them any more', async () => {
    const { channels, connection, gone, runtime } = await setUp();
    await channels.open();
    let asked = 0;
    const nobody = (): Promise<Reply> => {
      asked += 1;
      return Promise.resolve({ status: 'answered', value: 0 });
    };
    jest.spyOn(connection, 'look').mockImplementation(nobody);
    await runtime.advance(10_000);
    await gone;
    expect(asked).toBe(1);
  });

  it('are given up when their slots have another master, and stay when nobody knows which', async () => {
    const { channels, connection, gone } = await setUp();
    await channels.open();
    const owner = jest.spyOn(connection.client, 'ownerOf').mockReturnValue(undefined);
    await channels.check();
    expect(await Promise.race([gone, cluster.nodes[0]?.command('PING')])).toBe('PONG');
    owner.mockReturnValue('127.0.0.1:1');
    await channels.check();
    await gone;
  });

  it('are not relied on when their slot has got another master meanwhile', async () => {
    const { channels, connection } = await setUp();
    const { client } = connection;
    const owner = client.ownerOf(0);
    jest.spyOn(client, 'ownerOf').mockReturnValueOnce(owner).mockReturnValue('127.0.0.1:1');
    await expect(channels.open()).rejects.toBeInstanceOf(NotTheMaster);
  });

  it('stay while their master knows of them', async () => {
    const { channels, connection, gone, runtime } = await setUp();
    await channels.open();
    const asking = jest.spyOn(connection, 'look');
    await runtime.advance(10_000);
    expect(await asking.mock.results[0]?.value).toEqual({ status: 'answered', value: 1 });
    expect(await Promise.race([gone, cluster.nodes[0]?.command('PING')])).toBe('PONG');
  });
});
