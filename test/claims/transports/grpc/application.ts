import { setImmediate } from 'node:timers/promises';
import type { Metadata } from '@grpc/grpc-js';
import {
  Controller,
  Injectable,
  Module,
  UseGuards,
  UseInterceptors,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  GrpcMethod,
  GrpcStreamMethod,
  Transport,
  type MicroserviceOptions,
} from '@nestjs/microservices';
import { LockService, LockStoreUnavailableError, WithLock } from 'nestjs-holdfast';
import { lastValueFrom, map, mergeMap, Observable, of, retry, timer, toArray } from 'rxjs';
import { lockModule, notes, serve, untilLost } from '../support/serve.js';

interface Order {
  readonly id: string;
}

interface Answer {
  readonly text: string;
}

@Injectable()
class Noting implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    notes.push(`asked ${context.switchToRpc().getData<Order>().id}`);
    return true;
  }
}

@Injectable()
class Retrying implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const delay = (): Observable<unknown> => {
      notes.push('refused stream');
      return timer(20);
    };
    return next.handle().pipe(retry({ delay }));
  }
}

const ofTenant = (_orders: unknown, metadata: Metadata): string =>
  `tenant:${String(metadata.get('tenant')[0])}`;

@Controller()
class OrdersController {
  constructor(private readonly locks: LockService) {}

  @GrpcMethod('Orders', 'Pay')
  @WithLock('order:<order.id>')
  async pay(order: Order): Promise<Answer> {
    return { text: `paid ${order.id.length.toString()}` };
  }

  @GrpcMethod('Orders', 'PayInLine')
  @UseGuards(Noting)
  @WithLock('order:<order.id>', { wait: '20s' })
  async payInLine(order: Order): Promise<Answer> {
    notes.push(`began ${order.id}`);
    return { text: 'paid' };
  }

  @GrpcMethod('Orders', 'Work')
  @WithLock('order:<order.id>')
  async work(order: Order): Promise<Answer> {
    await untilLost(this.locks);
    return { text: order.id };
  }

  @GrpcMethod('Orders', 'Mistaken')
  @WithLock('order:<order.id>')
  async mistaken(order: Order): Promise<Answer> {
    return this.locks.run([`order:${order.id}`, 'other'], () => ({ text: 'done' }));
  }

  @GrpcMethod('Orders', 'Down')
  async down(order: Order): Promise<Answer> {
    const node = '10.0.0.7:6379';
    throw new LockStoreUnavailableError({
      operation: 'acquire',
      keys: [`order:${order.id}`],
      nodes: [{ node, kind: 'connection', message: `connect ECONNREFUSED ${node}` }],
    });
  }

  /** Never ends by itself. */
  @GrpcMethod('Orders', 'Watch')
  @WithLock('order:<order.id>', { returns: 'observable', ttl: '2s' })
  watch(order: Order): Observable<Answer> {
    return new Observable((subscriber) => {
      subscriber.next({ text: `watching ${order.id}` });
      return () => void notes.push(`left ${order.id}`);
    });
  }

  @GrpcMethod('Orders', 'WatchIfFree')
  @WithLock('order:<order.id>', { returns: 'observable', onLocked: 'skip' })
  watchIfFree(order: Order): Observable<Answer> {
    return of({ text: `watched ${order.id}` });
  }

  @GrpcStreamMethod('Orders', 'TalkIfFree')
  @WithLock('talk', { returns: 'observable', onLocked: 'skip' })
  talkIfFree(orders: Observable<Order>): Observable<Answer> {
    return orders.pipe(map(({ id }) => ({ text: id })));
  }

  @GrpcStreamMethod('Orders', 'Collect')
  async collect(orders: Observable<Order>): Promise<Answer> {
    return lastValueFrom(orders.pipe(mergeMap((order) => this.pay(order))));
  }

  /** Itself under a lock, in line for it. */
  @GrpcStreamMethod('Orders', 'Talk')
  @WithLock('talk', { returns: 'observable', wait: '20s' })
  talk(orders: Observable<Order>): Observable<Answer> {
    notes.push('began talk');
    return orders.pipe(map(({ id }) => ({ text: id })));
  }

  @GrpcStreamMethod('Orders', 'Echo')
  @WithLock(ofTenant, { returns: 'observable', wait: '20s' })
  echo(orders: Observable<Order>, _metadata: Metadata): Observable<Answer> {
    return orders.pipe(map(({ id }) => ({ text: id })));
  }

  @WithLock(ofTenant, { returns: 'observable', wait: '20s' })
  @GrpcStreamMethod('Orders', 'EchoInside')
  echoInside(orders: Observable<Order>, _metadata: Metadata): Observable<Answer> {
    return orders.pipe(map(({ id }) => ({ text: id })));
  }

  @GrpcStreamMethod('Orders', 'EchoRetried')
  @UseInterceptors(Retrying)
  @WithLock(ofTenant, { returns: 'observable' })
  echoRetried(orders: Observable<Order>, _metadata: Metadata): Observable<Answer> {
    return orders.pipe(map(({ id }) => ({ text: id })));
  }

  /** Its key needs no argument, so that its lock is taken before the pipes. */
  @GrpcStreamMethod('Orders', 'Gather')
  @WithLock('gather', { returns: 'observable', wait: '20s' })
  gather(orders: Observable<Order>): Observable<Answer> {
    return orders.pipe(
      toArray(),
      map((all) => ({ text: all.map(({ id }) => id).join() })),
    );
  }

  @GrpcStreamMethod('Orders', 'Add')
  @WithLock(ofTenant, { wait: '20s' })
  async add(orders: Observable<Order>, _metadata: Metadata): Promise<Answer> {
    await setImmediate();
    const all = await lastValueFrom(orders.pipe(toArray()));
    return { text: all.map(({ id }) => id).join() };
  }

  @GrpcStreamMethod('Orders', 'Chat')
  chat(orders: Observable<Order>): Observable<Answer> {
    return orders.pipe(
      mergeMap((order) => this.pay(order)),
      map(({ text }) => ({ text })),
    );
  }
}

@Module({
  imports: [lockModule()],
  controllers: [OrdersController],
})
class AppModule {}

const [protoPath = '', url = ''] = process.argv.slice(2);
const app = await NestFactory.createMicroservice<MicroserviceOptions>(AppModule, {
  transport: Transport.GRPC,
  options: { package: 'orders', protoPath, url },
  logger: ['error', 'warn'],
});
await app.listen();
serve(app, url);
