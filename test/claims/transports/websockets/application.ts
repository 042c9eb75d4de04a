import {
  Catch,
  Injectable,
  Module,
  ParseIntPipe,
  UseFilters,
  UseGuards,
  UseInterceptors,
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type NestInterceptor,
  type WsExceptionFilter,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { WsAdapter } from '@nestjs/platform-ws';
import {
  MessageBody,
  SubscribeMessage,
  WebSocketGateway,
  type OnGatewayDisconnect,
} from '@nestjs/websockets';
import {
  LockError,
  LockErrorFilter,
  LockErrorInterceptor,
  LockService,
  WithLock,
} from 'nestjs-holdfast';
import { retry, timer, type Observable } from 'rxjs';
import { lockModule, notes, serve, untilLost } from '../support/serve.js';

@Injectable()
class Locking implements CanActivate {
  constructor(private readonly locks: LockService) {}

  async canActivate(): Promise<boolean> {
    return this.locks.run('order:s3cret', { wait: 0 }, () => true);
  }
}

@Injectable()
class Noting implements CanActivate {
  canActivate(): boolean {
    notes.push('asked');
    return true;
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

@Injectable()
class Retrying implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const delay = (): Observable<unknown> => {
      notes.push('refused');
      return timer(20);
    };
    return next.handle().pipe(retry({ delay }));
  }
}

@WebSocketGateway()
@UseInterceptors(Retrying)
class RetryingGateway {
  @SubscribeMessage('retried')
  @WithLock('order:<order.id>')
  async pay(@MessageBody() order: Order): Promise<string> {
    return `paid ${order.id.length.toString()}`;
  }
}

/** As most are written: nothing of ours is said of it. */
@WebSocketGateway()
class PlainGateway implements OnGatewayDisconnect {
  constructor(private readonly locks: LockService) {}

  handleDisconnect(): void {
    notes.push('gone');
  }

  @SubscribeMessage('in line')
  @UseGuards(Noting)
  @WithLock('order:<order.id>', { wait: '20s' })
  async inLine(@MessageBody() order: Order): Promise<string> {
    notes.push(`began ${order.id}`);
    return 'done';
  }

  @SubscribeMessage('keys')
  @WithLock(['order:<0>', 'raw:<request.body.raw>'])
  async keys(@MessageBody('id', ParseIntPipe) _id: number): Promise<unknown> {
    return this.locks.current()?.keys;
  }

  @SubscribeMessage('plain')
  @UseGuards(Noting)
  @WithLock('order:<order.id>')
  async pay(@MessageBody() order: Order): Promise<string> {
    return `paid ${order.id.length.toString()}`;
  }

  @SubscribeMessage('work')
  @WithLock('order:<order.id>')
  async work(@MessageBody() order: Order): Promise<string> {
    await untilLost(this.locks);
    return order.id;
  }

  @SubscribeMessage('plain service')
  async service(@MessageBody() order: Order): Promise<string> {
    return this.locks.run(`order:${order.id}`, { wait: 0 }, () => 'done');
  }

  @SubscribeMessage('plain guarded')
  @UseGuards(Locking)
  async guarded(): Promise<string> {
    return 'done';
  }
}

@Catch(LockError)
class Apologizing implements WsExceptionFilter<LockError> {
  catch({ code }: LockError, host: ArgumentsHost): void {
    const client = host.switchToWs().getClient<{ send(text: string): void }>();
    client.send(`sorry: ${code}`);
  }
}

@WebSocketGateway()
@UseFilters(Apologizing)
class ApologizingGateway {
  @SubscribeMessage('apologized')
  @UseGuards(Locking)
  async service(): Promise<string> {
    return 'done';
  }
}

@Module({
  imports: [lockModule()],
  providers: [OrdersGateway, RetryingGateway, PlainGateway, ApologizingGateway],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
if (process.argv.includes('ws')) app.useWebSocketAdapter(new WsAdapter(app));
await app.listen(0, '127.0.0.1');
serve(app, await app.getUrl());
