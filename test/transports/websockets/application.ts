import {
  Injectable,
  Module,
  UseFilters,
  UseGuards,
  UseInterceptors,
  type CanActivate,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  LockErrorFilter,
  LockErrorInterceptor,
  LockModule,
  LockService,
  WithLock,
} from 'nestjs-holdfast';
import { serve } from '../support/serve.js';

@Injectable()
class Locking implements CanActivate {
  constructor(private readonly locks: LockService) {}

  async canActivate(): Promise<boolean> {
    return this.locks.run('order:s3cret', { wait: 0 }, () => true);
  }
}

interface Order {
  readonly id: string;
}

@WebSocketGateway()
@UseFilters(LockErrorFilter)
@UseInterceptors(LockErrorInterceptor)
class OrdersGateway {
  constructor(private readonly locks: LockService) {}

  @SubscribeMessage('pay')
  @WithLock('order:<order.id>')
  async pay(@MessageBody() order: Order): Promise<string> {
    return `paid ${order.id.length.toString()}`;
  }

  @SubscribeMessage('service')
  async service(@MessageBody() order: Order): Promise<string> {
    return this.locks.run(`order:${order.id}`, { wait: 0 }, () => 'done');
  }

  @SubscribeMessage('guarded')
  @UseGuards(Locking)
  async guarded(): Promise<string> {
    return 'done';
  }
}

@Module({
  imports: [LockModule.forRoot({ store: 'memory', shutdownTimeout: '100ms' })],
  providers: [OrdersGateway],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
await app.listen(0, '127.0.0.1');
serve(app, await app.getUrl());
