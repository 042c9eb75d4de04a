import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockService } from 'nestjs-holdfast';
import { detailOf } from '../support/detail.js';
import { RedisServer } from '../support/redis-server.js';

Logger.overrideLogger(false);

/** What a call says when its Redis is at this URL. */
async function refusal(redis: string): Promise<string> {
  const locks = new LockService({ redis, nodeTimeout: 300 });
  try {
    await locks.acquire('key', { wait: 0 });
    return 'acquired';
  } catch (error) {
    return detailOf(error);
  } finally {
    await locks.shutdown(0);
  }
}

/** A port that does this with a connection as soon as it hears anything. */
async function portThat(answer: (socket: Socket) => void): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      answer(socket);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

const portOf = (server: Server): string => String((server.address() as AddressInfo).port);

describe('a URL with the wrong one of redis:// and rediss://', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterAll(() => redis.stop());

  it('says that a port without TLS accepts connections, but no TLS', async () => {
    expect(await refusal(redis.url.replace('redis:', 'rediss:'))).toContain(
      'not connected within 300 ms (the port accepts connections, but not TLS: if it has no TLS, write redis:// instead of rediss://)',
    );
  });

  it.each<[string, (socket: Socket) => void]>([
    ['resets', (socket) => void socket.resetAndDestroy()],
    // A fatal alert, "unexpected message".
    ['answers with an alert', (socket) => void socket.end(Buffer.from([21, 3, 3, 0, 2, 2, 10]))],
  ])('says that a port which %s may expect TLS', async (_what, answer) => {
    const server = await portThat(answer);
    const detail = await refusal(`redis://127.0.0.1:${portOf(server)}`);
    server.close();
    await once(server, 'close');
    expect(detail).toContain(
      '(a port that expects TLS closes plain connections: if it is one, write rediss:// and not redis://)',
    );
  });

  it('says that a port which resets connections with TLS may have none', async () => {
    const server = await portThat((socket) => void socket.resetAndDestroy());
    const detail = await refusal(`rediss://127.0.0.1:${portOf(server)}`);
    server.close();
    await once(server, 'close');
    expect(detail).toContain('read ECONNRESET (the port accepts connections, but not TLS');
  });

  it.each(['redis', 'rediss'])('says nothing of TLS where nothing listens: %s', async (scheme) => {
    const server = await portThat(() => undefined);
    const url = `${scheme}://127.0.0.1:${portOf(server)}`;
    server.close();
    await once(server, 'close');
    const detail = await refusal(url);
    expect(detail).toContain('ECONNREFUSED');
    expect(detail).not.toContain('TLS');
  });
});
