import { Controller, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  GrpcMethod,
  GrpcStreamMethod,
  Transport,
  type MicroserviceOptions,
} from '@nestjs/microservices';
import { LockService, LockStoreUnavailableError, WithLock } from 'nestjs-holdfast';
import { LockTestingModule } from 'nestjs-holdfast/testing';
import { lastValueFrom, map, mergeMap, Observable } from 'rxjs';
import { notes, serve, untilLost } from '../support/serve.js';

interface Order {
  readonly id: string;
}

interface Answer {
  readonly text: string;
}

@Controller()
class OrdersController {
  constructor(private readonly locks: LockService) {}

  @GrpcMethod('Orders', 'Pay')
  @WithLock('order:<order.id>')
  async pay(order: Order): Promise<Answer> {
    return { text: `paid ${order.id.length.toString()}` };
  }

  @GrpcMethod('Orders', 'PayInLine')
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

  @GrpcStreamMethod('Orders', 'Chat')
  chat(orders: Observable<Order>): Observable<Answer> {
    return orders.pipe(
      mergeMap((order) => this.pay(order)),
      map(({ text }) => ({ text })),
    );
  }
}

@Module({
  imports: [LockTestingModule.forRoot({ shutdownTimeout: '100ms' })],
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
