import { OnQueueEvent, OnWorkerEvent } from '@nestjs/bullmq';
import { Controller } from '@nestjs/common';
import {
  ClientProxyFactory,
  EventPattern,
  GrpcStreamCall,
  Payload,
  Transport,
} from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { WebSocketGateway } from '@nestjs/websockets';
import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError, LockModule, LockService, WithLock } from 'nestjs-holdfast';
import { lastValueFrom } from 'rxjs';
import { deferred } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';

@Controller()
class OrdersController {
  @EventPattern({ order: 'paid' })
  @WithLock('order:<order.id>')
  async onPaid(@Payload() order: { id: number }): Promise<void> {
    await Promise.resolve(order);
  }
}

const LOCKS = LockModule.forRoot({ store: 'memory', shutdownTimeout: '100ms' });

describe('an event that is refused its lock', () => {
  it('is named in the log, with its handler and the key', async () => {
    const warned = deferred<string>();
    const module = await Test.createTestingModule({
      imports: [LOCKS],
      controllers: [OrdersController],
    }).compile();
    const options = { host: '127.0.0.1', port: await freePort() };
    const app = module.createNestMicroservice({ transport: Transport.TCP, options });
    const ignore = (): void => undefined;
    app.useLogger({
      log: ignore,
      error: ignore,
      warn: (message: string) => {
        if (message.includes('event')) warned.resolve(message);
      },
    });
    await app.listen();
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
    try {
      const lock = await app.get(LockService).acquire('order:7');
      await lastValueFrom(client.emit({ order: 'paid' }, { id: 7 }), { defaultValue: undefined });
      expect(await warned.promise).toMatch(
        /^OrdersController\.onPaid did not handle an event \{"order":"paid"\}, and is not given it again unless the broker does so: Lock "order:7" could not/,
      );
      await lock.release();
    } finally {
      await client.close();
      await app.close();
    }
  });
});

describe('a lock on a method that Nest calls without looking what becomes of it', () => {
  @WebSocketGateway()
  class OrdersGateway {
    @WithLock('clients')
    async handleConnection(): Promise<void> {
      await Promise.resolve();
    }
  }

  @Controller()
  class StreamsController {
    @GrpcStreamCall('Orders', 'Chat')
    @WithLock('chat')
    async chat(): Promise<void> {
      await Promise.resolve();
    }
  }

  class JobListeners {
    @OnWorkerEvent('completed')
    @WithLock('jobs')
    async onCompleted(): Promise<void> {
      await Promise.resolve();
    }
  }

  class QueueListeners {
    @WithLock('jobs')
    @OnQueueEvent('completed')
    async onCompleted(): Promise<void> {
      await Promise.resolve();
    }
  }

  class Connections {
    @WithLock('clients')
    async handleConnection(): Promise<void> {
      await Promise.resolve();
    }
  }

  it.each([
    [OrdersGateway, 'OrdersGateway.handleConnection: Nest calls handleConnection() of a gateway'],
    [StreamsController, 'StreamsController.chat: Nest calls a method with @GrpcStreamCall()'],
    [JobListeners, 'JobListeners.onCompleted: Nest calls a method with @OnWorkerEvent()'],
    [QueueListeners, 'QueueListeners.onCompleted: Nest calls a method with @OnQueueEvent()'],
  ])('ends the start: %p', async (type, problem) => {
    const module = await Test.createTestingModule({
      imports: [LOCKS],
      providers: [type],
    }).compile();
    module.useLogger(false);
    const starting = module.init();
    await expect(starting).rejects.toThrow(LockConfigurationError);
    await expect(starting).rejects.toThrow(problem);
  });

  it('is none where the class is no gateway', async () => {
    const module = await Test.createTestingModule({
      imports: [LOCKS],
      providers: [Connections],
    }).compile();
    await module.init();
    await module.close();
  });
});
