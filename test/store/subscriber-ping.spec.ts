import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { IoredisSubscriber } from '../../lib/store/redis/client/ioredis/ioredis-subscriber.js';
import { RedisServer } from '../support/redis-server.js';

const ignore = (): void => undefined;

it('a connection that only listens asks the server whether it is still there, and rejects when it is not', async () => {
  const server = await RedisServer.start();
  const redis = new Redis(server.url, { lazyConnect: true, retryStrategy: () => null });
  const events = { onMessage: ignore, onError: ignore, onMoved: ignore, onEnd: ignore };
  const subscriber = new IoredisSubscriber(redis, events);
  try {
    await subscriber.connect();
    await subscriber.subscribe('channel', 'plain');
    const sent = await server.commandsSentDuring(() => subscriber.ping());
    expect(sent).toEqual([['ping']]);
    await server.kill();
    await expect(subscriber.ping()).rejects.toThrow();
  } finally {
    subscriber.disconnect();
    await server.stop();
  }
});
