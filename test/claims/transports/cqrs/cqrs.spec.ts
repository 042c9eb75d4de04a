import type { INestApplicationContext } from '@nestjs/common';
import {
  Command,
  CommandBus,
  CommandHandler,
  CqrsModule,
  EventBus,
  EventsHandler,
  Query,
  QueryBus,
  QueryHandler,
  UnhandledExceptionBus,
  type ICommandHandler,
  type IEventHandler,
  type IQueryHandler,
} from '@nestjs/cqrs';
import { Test } from '@nestjs/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LockModule, LockNotAcquiredError, LockService, WithLock } from 'nestjs-holdfast';
import { firstValueFrom } from 'rxjs';
import { Gate } from '../../../nest/gate.js';
import { RedisServer } from '../../../support/redis-server.js';

class Pay extends Command<string> {
  constructor(readonly id: string) {
    super();
  }
}

class Total extends Query<number> {
  constructor(readonly id: string) {
    super();
  }
}

class Paid {
  constructor(readonly id: string) {}
}

let gate = new Gate();

@CommandHandler(Pay)
class PayHandler implements ICommandHandler<Pay> {
  @WithLock('order:<command.id>')
  async execute(command: Pay): Promise<string> {
    await gate.pass();
    return `paid ${command.id}`;
  }
}

@QueryHandler(Total)
class TotalHandler implements IQueryHandler<Total> {
  @WithLock('order:<query.id>')
  async execute(query: Total): Promise<number> {
    return query.id.length;
  }
}

@EventsHandler(Paid)
class PaidHandler implements IEventHandler<Paid> {
  readonly seen: string[] = [];

  @WithLock('order:<event.id>', { wait: '5s' })
  async handle(event: Paid): Promise<void> {
    this.seen.push(event.id);
  }
}

@EventsHandler(Paid)
class HastyHandler implements IEventHandler<Paid> {
  @WithLock('order:<event.id>')
  async handle(event: Paid): Promise<void> {
    throw new Error(`The lock of ${event.id} is held when this is called.`);
  }
}

describe('handlers of CQRS', () => {
  let redis: RedisServer;
  let app: INestApplicationContext;

  beforeAll(async () => {
    redis = await RedisServer.start();
    const module = await Test.createTestingModule({
      imports: [
        CqrsModule.forRoot({ rethrowUnhandled: false }),
        LockModule.forRoot({ redis: redis.url }),
      ],
      providers: [PayHandler, TotalHandler, PaidHandler, HastyHandler],
    }).compile();
    module.useLogger(false);
    app = await module.init();
  });
  beforeEach(() => {
    gate = new Gate();
  });
  afterAll(async () => {
    await app.close();
    await redis.stop();
  });

  it('refuse a command while another one has its key, and run it afterwards', async () => {
    const first = app.get(CommandBus).execute(new Pay('7'));
    await gate.reached;
    await expect(app.get(CommandBus).execute(new Pay('7'))).rejects.toThrow(LockNotAcquiredError);
    gate.open();
    expect(await first).toBe('paid 7');
    expect(await app.get(CommandBus).execute(new Pay('7'))).toBe('paid 7');
  });

  it('refuse a query in the same way', async () => {
    const lock = await app.get(LockService).acquire('order:8');
    await expect(app.get(QueryBus).execute(new Total('8'))).rejects.toThrow(LockNotAcquiredError);
    await lock.release();
    expect(await app.get(QueryBus).execute(new Total('8'))).toBe(1);
  });

  it('wait with an event; one that is refused is reported on the bus for unhandled exceptions', async () => {
    const lock = await app.get(LockService).acquire('order:9');
    const refused = firstValueFrom(app.get(UnhandledExceptionBus));
    const granted = new Promise((resolve) => app.get(LockService).on('released', resolve));
    void app.get(EventBus).publish(new Paid('9'));
    expect((await refused).exception).toBeInstanceOf(LockNotAcquiredError);
    expect(app.get(PaidHandler).seen).toEqual([]);
    await lock.release();
    await granted;
    await app.get(LockService).run('order:9', { wait: '5s' }, () => undefined);
    expect(app.get(PaidHandler).seen).toEqual(['9']);
  });
});
