import { setTimeout as sleep } from 'node:timers/promises';
import { OnQueueEvent, OnWorkerEvent } from '@nestjs/bullmq';
import {
  Catch,
  Controller,
  Get,
  Inject,
  Next,
  Param,
  Res,
  UseFilters,
  type INestMicroservice,
  type ModuleMetadata,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { OnEvent } from '@nestjs/event-emitter';
import {
  ClientProxyFactory,
  EventPattern,
  GrpcStreamCall,
  Payload,
  Server,
  Transport,
  type ClientProxy,
  type CustomTransportStrategy,
} from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { WebSocketGateway } from '@nestjs/websockets';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  LockConfigurationError,
  LockModule,
  LockService,
  RunOnce,
  WithLock,
} from 'nestjs-holdfast';
import { LockTestingModule, TestLocks } from 'nestjs-holdfast/testing';
import { from, lastValueFrom, of, tap, type Observable } from 'rxjs';
import { deferred, eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { KafkaWithoutBroker } from '../support/without-broker.js';

@Controller()
class OrdersController {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  @EventPattern({ order: 'paid' })
  @WithLock('order:<order.id>')
  async onPaid(@Payload() order: { id: number }): Promise<void> {
    await Promise.resolve(order);
  }

  @EventPattern([{ order: 'sent' }, { order: 'returned' }])
  @WithLock('order:<order.id>')
  async onMoved(@Payload() order: { id: number }): Promise<void> {
    await Promise.resolve(order);
  }

  @EventPattern({ order: 'lost' })
  @WithLock('lost:<order.id>')
  async onLost(@Payload() order: { id: number }): Promise<void> {
    this.locks.lose(`lost:${String(order.id)}`);
    await Promise.resolve();
  }
}

const LOCKS = LockModule.forRoot({ store: 'memory', shutdownTimeout: '100ms' });

describe('the log of an event', () => {
  const lines: string[] = [];
  let heard = deferred<string>();
  let app: INestMicroservice;
  let client: ClientProxy;

  beforeAll(async () => {
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot({ shutdownTimeout: '100ms' })],
      controllers: [OrdersController],
    }).compile();
    const options = { host: '127.0.0.1', port: await freePort() };
    app = module.createNestMicroservice({ transport: Transport.TCP, options });
    const ignore = (): void => undefined;
    const warn = (message: string): void => {
      lines.push(message);
      heard.resolve(message);
    };
    app.useLogger({ log: ignore, error: ignore, warn });
    await app.listen();
    client = ClientProxyFactory.create({ transport: Transport.TCP, options });
  });
  afterAll(async () => {
    await client.close();
    await app.close();
  });

  /** What is logged of an event, when the first line is there. */
  const lineOf = async (pattern: object): Promise<string> => {
    heard = deferred();
    await lastValueFrom(client.emit(pattern, { id: 7 }), { defaultValue: undefined });
    return heard.promise;
  };

  it('names one that is refused its lock, with its handler and the key', async () => {
    const lock = await app.get(LockService).acquire('order:7');
    expect(await lineOf({ order: 'paid' })).toMatch(
      /^OrdersController\.onPaid did not handle an event \{"order":"paid"\}, and is not given it again unless the broker does so: Lock "order:7" could not/,
    );
    await lock.release();
  });

  it('names all patterns of a handler', async () => {
    const lock = await app.get(LockService).acquire('order:7');
    expect(await lineOf({ order: 'returned' })).toContain(
      '.onMoved did not handle an event {"order":"sent"}, {"order":"returned"}, and is not',
    );
    await lock.release();
  });

  it('names one that meets an outage', async () => {
    app.get(TestLocks).fail();
    expect(await lineOf({ order: 'paid' })).toMatch(
      /^OrdersController\.onPaid did not handle an event \{"order":"paid"\}.*"order:7"/,
    );
    app.get(TestLocks).recover();
  });

  it('has the loss of one that ran, once', async () => {
    lines.splice(0);
    expect(await lineOf({ order: 'lost' })).toMatch(/^Lock "lost:7" was lost/);
    // What comes later on the same connection is logged later.
    const lock = await app.get(LockService).acquire('order:7');
    expect(await lineOf({ order: 'paid' })).toContain('did not handle an event {"order":"paid"}');
    await lock.release();
    expect(lines).toHaveLength(2);
  });
});

describe('an event that is skipped by one of its handlers', () => {
  const done: string[] = [];
  let begun: ReturnType<typeof deferred<void>>;

  @Controller()
  class Skipping {
    @EventPattern('paid')
    @WithLock('order:<_data.id>', { returns: 'observable', onLocked: 'skip' })
    pay(_data: unknown): Observable<string> {
      done.push('locked');
      return of('paid');
    }
  }

  @Controller()
  class Other {
    @EventPattern('paid')
    note(_data: unknown): Observable<void> {
      return from(begun.promise).pipe(tap(() => done.push('other')));
    }
  }

  class WithoutBroker extends Server implements CustomTransportStrategy {
    listen(listening: () => void): void {
      listening();
    }
    close(): void {}
    on(): void {}
    unwrap<T>(): T {
      return undefined as T;
    }
  }

  it.each([
    ['a microservice, skipped first', new WithoutBroker(), [Skipping, Other]],
    ['a microservice, skipped last', new WithoutBroker(), [Other, Skipping]],
    ['Kafka', new KafkaWithoutBroker({}), [Skipping, Other]],
  ])('is handled by the others (%s)', async (_, strategy, controllers) => {
    done.length = 0;
    begun = deferred();
    const module = await Test.createTestingModule({ imports: [LOCKS], controllers }).compile();
    const app = module.createNestMicroservice({ strategy });
    await app.listen();
    const lock = await app.get(LockService).acquire('order:7');
    const packet = { pattern: 'paid', data: { id: 7 } };
    const { handleEvent } = strategy as unknown as Record<
      'handleEvent',
      (...args: unknown[]) => Promise<void>
    >;
    const refused = new Promise((resolve) => app.get(LockService).on('refused', resolve));
    const handled = handleEvent.call(strategy, 'paid', packet, {});
    await refused;
    await sleep(0);
    begun.resolve();
    await handled;
    await eventually(() => done.length > 0);
    await lock.release();
    await app.close();
    expect(done).toEqual(['other']);
  });
});

it('an event of Kafka that is refused its lock is not committed', async () => {
  const module = await Test.createTestingModule({
    imports: [LOCKS],
    controllers: [OrdersController],
  }).compile();
  const strategy = new KafkaWithoutBroker({});
  const app = module.createNestMicroservice({ strategy });
  app.useLogger(false);
  await app.listen();
  const topic = JSON.stringify({ order: 'paid' });
  /** What the client calls for each message: it commits the offset if this resolves. */
  const each = (): Promise<unknown> =>
    strategy.handleMessage({
      topic,
      partition: 0,
      message: { key: null, value: Buffer.from('{"id":7}'), headers: {} },
    } as never);
  const lock = await app.get(LockService).acquire('order:7');
  await expect(each()).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
  await lock.release();
  await each();
  await app.close();
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

  class EventListeners {
    @OnEvent('order.paid')
    @OnEvent('order.sent', { suppressErrors: false })
    @WithLock('events')
    async onEvent(): Promise<void> {
      await Promise.resolve();
    }
  }

  @Catch()
  class Failures {
    @WithLock('failures')
    async catch(): Promise<void> {
      await Promise.resolve();
    }
  }

  @UseFilters(Failures)
  @Controller()
  class FilteredController {}

  @UseFilters(new Failures())
  @Controller()
  class GivenFilterController {}

  @Controller()
  class GivenFilterRoute {
    @UseFilters(new Failures())
    @Get()
    async get(): Promise<void> {
      await Promise.resolve();
    }
  }

  class LoggedListeners {
    @OnEvent('order.paid')
    @WithLock('events')
    async onEvent(): Promise<void> {
      await Promise.resolve();
    }
  }

  class Connections {
    @WithLock('clients')
    async handleConnection(): Promise<void> {
      await Promise.resolve();
    }
  }

  const UNANSWERED = 'the handler sends the response (@Res() or @Next())';

  @Controller()
  class OnceController {
    @Get(':id')
    @RunOnce('a:<request.params.id>')
    async sendOnce(@Res() _response: unknown): Promise<void> {
      await Promise.resolve();
    }
  }

  @Controller()
  class SkippedController {
    @Get(':id')
    @WithLock('a:<_id>', { onLocked: 'skip' })
    async skip(@Param('id') _id: string, @Next() _next: unknown): Promise<void> {
      await Promise.resolve();
    }
  }

  const ofFilter = 'Failures.catch: Nest calls catch() of an exception filter';

  it.each<[string, ModuleMetadata]>([
    [
      'OrdersGateway.handleConnection: Nest calls handleConnection() of a gateway',
      { providers: [OrdersGateway] },
    ],
    [
      'StreamsController.chat: Nest calls a method with @GrpcStreamCall()',
      { providers: [StreamsController] },
    ],
    [
      'JobListeners.onCompleted: Nest calls a method with @OnWorkerEvent()',
      { providers: [JobListeners] },
    ],
    [
      'QueueListeners.onCompleted: Nest calls a method with @OnQueueEvent()',
      { providers: [QueueListeners] },
    ],
    [
      'EventListeners.onEvent: Nest calls a method with @OnEvent() and suppressErrors: false',
      { providers: [EventListeners] },
    ],
    [ofFilter, { providers: [{ provide: APP_FILTER, useClass: Failures }] }],
    [ofFilter, { controllers: [FilteredController] }],
    [ofFilter, { controllers: [GivenFilterController] }],
    [ofFilter, { controllers: [GivenFilterRoute] }],
    [`OnceController.sendOnce: ${UNANSWERED}`, { controllers: [OnceController] }],
    [`SkippedController.skip: ${UNANSWERED}`, { controllers: [SkippedController] }],
  ])('prevents the start: %s %#', async (problem, metadata) => {
    const module = await Test.createTestingModule({ imports: [LOCKS], ...metadata }).compile();
    module.useLogger(false);
    const starting = module.init();
    await expect(starting).rejects.toThrow(LockConfigurationError);
    await expect(starting).rejects.toThrow(problem);
  });

  it('prevents the start with a filter of useGlobalFilters(), and is refused by bind()', async () => {
    const module = await Test.createTestingModule({ imports: [LOCKS] }).compile();
    const app = module.createNestApplication({ logger: false });
    expect(() => app.get(LockService).bind(new Failures())).toThrow(ofFilter);
    app.useGlobalFilters(new Failures());
    await expect(app.init()).rejects.toThrow(ofFilter);
  });

  it('is none where an override takes the place of the locked method', async () => {
    @WebSocketGateway()
    class SafeGateway extends OrdersGateway {
      override async handleConnection(): Promise<void> {
        await super.handleConnection().catch(() => undefined);
      }
    }

    class SafeListeners extends EventListeners {
      @OnEvent('order.paid', { suppressErrors: false })
      override async onEvent(): Promise<void> {
        await super.onEvent().catch(() => undefined);
      }
    }

    @Catch()
    class SafeFailures extends Failures {
      override async catch(): Promise<void> {
        await Promise.resolve();
      }
    }

    @UseFilters(SafeFailures)
    @Controller()
    class SafeController {}

    const module = await Test.createTestingModule({
      imports: [LOCKS],
      controllers: [SafeController],
      providers: [SafeGateway, SafeListeners],
    }).compile();
    module.useLogger(false);
    await module.init();
    await module.close();
  });

  it('is none where the class is no gateway, or the errors of a listener are logged', async () => {
    const module = await Test.createTestingModule({
      imports: [LOCKS],
      providers: [Connections, LoggedListeners],
    }).compile();
    await module.init();
    await module.close();
  });
});
