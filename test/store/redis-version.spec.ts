import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockConfigurationError, LockService } from 'nestjs-holdfast';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { Transform } from 'node:stream';
import { RedisServer } from '../support/redis-server.js';

let server: RedisServer;
let mask: Server;
let services: LockService[] = [];

/** The major version that the server pretends to have. */
let major = '5';

beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await RedisServer.start();
  mask = createServer((client) => {
    const upstream = connect(server.port, '127.0.0.1');
    const rename = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        const text = chunk.toString('latin1').replace(/redis_version:\d/, `redis_version:${major}`);
        done(null, Buffer.from(text, 'latin1'));
      },
    });
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
    client.pipe(upstream).pipe(rename).pipe(client);
  });
  await new Promise<void>((resolve) => {
    mask.listen(0, '127.0.0.1', resolve);
  });
});

afterEach(async () => {
  await Promise.all(services.map((service) => service.shutdown(0)));
  services = [];
});

afterAll(async () => {
  mask.close();
  await server.stop();
});

const masked = (): string => `127.0.0.1:${String((mask.address() as AddressInfo).port)}`;

async function opening(redis: string): Promise<void> {
  const service = new LockService({ redis });
  services.push(service);
  await service.open();
}

describe('the version of the server', () => {
  it('is refused at the start where it is too old, and named', async () => {
    major = '5';
    await expect(opening(`redis://${masked()}`)).rejects.toThrow(LockConfigurationError);
    await expect(opening(`redis://${masked()}`)).rejects.toThrow(
      new RegExp(`^Holdfast needs Redis 6\\.0 or later, or Valkey; ${masked()} runs 5\\.`),
    );
  });

  it('is no obstacle from 6.0 on', async () => {
    major = '6';
    await opening(`redis://${masked()}`);
  });

  it('is not asked of a server that keeps it to itself', async () => {
    major = '5';
    const print = jest.spyOn(console, 'warn').mockReturnValue(); // of ioredis
    await server.command('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-info');
    await opening(`redis://app:secret@${masked()}`);
    print.mockRestore();
  });
});
