/** An application that bundle.spec.ts puts into one file. It prints what it has to say, and ends by itself. */
import 'reflect-metadata';
import { Controller, HttpCode, Injectable, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import {
  LockModule,
  LockService,
  LockStoreUnavailableError,
  RunOnce,
  WithLock,
} from 'nestjs-holdfast';

const [redis = '', fault] = process.argv.slice(2);

@Injectable()
class Orders {
  @WithLock('order:<0.id>')
  async pay(order: { readonly id: string }): Promise<string> {
    return `paid ${order.id}`;
  }
}

@Controller()
class OrdersController {
  @Post('orders/:id')
  @HttpCode(200)
  @WithLock('order:<request.params.id>')
  async pay(): Promise<string> {
    return 'paid';
  }
}

@Injectable()
class Reports {
  @Cron('0 0 1 1 *')
  @RunOnce('report:<fireTime>', { keepDone: '1m' })
  async write(): Promise<void> {
    console.log('wrote a report');
  }
}

/** A minifier renames its parameter. */
const namesParameter = () => {
  class Named {
    @WithLock('order:<orderNumber>')
    async pay(orderNumber: string): Promise<string> {
      return orderNumber;
    }
  }
  return [Named];
};

try {
  @Module({
    imports: [LockModule.forRoot({ redis }), ScheduleModule.forRoot()],
    controllers: [OrdersController],
    providers: [
      Orders,
      ...(fault === 'fire-time' ? [Reports] : []),
      ...(fault === 'parameter' ? namesParameter() : []),
    ],
  })
  class AppModule {}
  const app = await NestFactory.create(AppModule, { logger: false, abortOnError: false });
  await app.listen(0, '127.0.0.1');
  console.log(await app.get(Orders).pay({ id: '7' }));
  const lock = await app.get(LockService).acquire('order:8');
  const url = `${await app.getUrl()}/orders/8`;
  console.log((await fetch(url, { method: 'POST' })).status);
  await lock.release();
  console.log((await fetch(url, { method: 'POST' })).status);
  if (fault === 'foreign') {
    console.log(
      await app
        .get(LockService)
        .acquire('order:foreign')
        .catch(
          (error: unknown) =>
            error instanceof LockStoreUnavailableError && JSON.stringify(error.nodes),
        ),
    );
  }
  await app.close();
} catch (error) {
  console.log(String(error));
}
