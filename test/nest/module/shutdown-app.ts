/** An application in a process of its own, for shutdown.spec.ts. SIGUSR2 lets its work end; SIGHUP closes it by `app.close()`. */
import { once } from 'node:events';
import { Controller, Module, Param, Post, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { LockModule, LockService, WithLock } from 'nestjs-holdfast';

const { PLATFORM, REDIS_URL = '', SHUTDOWN_TIMEOUT = '10s', HOOKS } = process.env;
const mayEnd = once(process, 'SIGUSR2');

@Controller()
class OrdersController {
  constructor(private readonly locks: LockService) {}

  @Post('orders/:id')
  @WithLock('order:<request.params.id>')
  async pay(@Param('id') id: string): Promise<string> {
    console.log(`works on ${id}`);
    await mayEnd;
    return `paid ${id}`;
  }

  @Post('waiting/:id')
  async wait(@Param('id') id: string): Promise<string> {
    return this.locks.run(`order:${id}`, { wait: '60s' }, () => `paid ${id}`);
  }

  /** Work that goes on until its lock is taken away. */
  @Post('endless/:id')
  async endless(@Param('id') id: string): Promise<string> {
    return this.locks.run(`order:${id}`, async ({ signal }) => {
      console.log(`works on ${id}`);
      await once(signal, 'abort');
      console.log(`aborted: ${String((signal.reason as { reason?: unknown }).reason)}`);
      return `paid ${id}`;
    });
  }
}

@Module({
  imports: [LockModule.forRoot({ redis: REDIS_URL, shutdownTimeout: SHUTDOWN_TIMEOUT as '10s' })],
  controllers: [OrdersController],
})
class AppModule {}

const logger = ['error', 'warn', 'fatal'] as const;
const app: INestApplication =
  PLATFORM === 'fastify'
    ? await NestFactory.create(AppModule, new FastifyAdapter(), { logger: [...logger] })
    : await NestFactory.create(AppModule, { logger: [...logger] });
if (HOOKS !== 'no') app.enableShutdownHooks();
process.once('SIGHUP', () => {
  void app.close().then(() => {
    console.log('closed');
  });
});
await app.listen(0, '127.0.0.1');
console.log(`open on ${await app.getUrl()}`);
