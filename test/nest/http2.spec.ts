import { connect, constants, type ClientHttp2Session } from 'node:http2';
import { Readable } from 'node:stream';
import { Controller, Get, StreamableFile, type INestApplication } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LockModule, LockService, WithLock } from 'nestjs-holdfast';
import { until } from '../support/eventually.js';

let began = 0;

async function* endless(): AsyncGenerator<string> {
  yield 'begun';
  await new Promise(() => undefined);
}

@Controller()
class OrdersController {
  @Get('line')
  @WithLock('order:7', { wait: '20s' })
  async inLine(): Promise<string> {
    began += 1;
    return 'done';
  }

  @Get('stream')
  @WithLock('stream')
  async stream(): Promise<StreamableFile> {
    return new StreamableFile(Readable.from(endless()));
  }

  @Get('another')
  another(): string {
    return 'done';
  }
}

describe('over HTTP/2', () => {
  let app: INestApplication;
  let session: ClientHttp2Session;

  beforeAll(async () => {
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory', shutdownTimeout: '100ms' })],
      controllers: [OrdersController],
    }).compile();
    app = module.createNestApplication(new FastifyAdapter({ http2: true } as object));
    app.useLogger(false);
    await app.listen(0, '127.0.0.1');
    session = connect(await app.getUrl());
  });
  afterAll(async () => {
    session.destroy();
    await app.close();
  });

  const get = (path: string) => {
    const stream = session.request({ ':path': path });
    stream.on('error', () => undefined);
    stream.resume();
    return stream;
  };

  it('a request whose stream is cancelled leaves the line', async () => {
    const locks = app.get(LockService);
    const lock = await locks.acquire('order:7');
    const waiting = get('/line');
    // What is asked for later on the same connection comes after it.
    await until(get('/another'), 'end');
    waiting.close(constants.NGHTTP2_CANCEL);
    await until(get('/another'), 'end');
    await lock.release();
    expect(await locks.tryRun('order:7', () => began)).toEqual({ acquired: true, value: 0 });
    await until(get('/line'), 'end');
    expect(began).toBe(1);
  });

  it('the lock of a streamed answer is given back when its stream is cancelled', async () => {
    const locks = app.get(LockService);
    const streamed = session.request({ ':path': '/stream' });
    streamed.on('error', () => undefined);
    await until(streamed, 'data');
    expect(await locks.tryAcquire('stream')).toBeNull();
    streamed.close(constants.NGHTTP2_CANCEL);
    await using lock = await locks.acquire('stream');
    expect(lock.isHeld).toBe(true);
  });

  it('a streamed answer is reset when its lock is lost', async () => {
    const streamed = session.request({ ':path': '/stream' });
    streamed.on('error', () => undefined);
    await until(streamed, 'data');
    const closed = until(streamed, 'close');
    app.get(LockService).lose('stream');
    await closed;
    expect(streamed.rstCode).toBe(constants.NGHTTP2_CANCEL);
  });
});
