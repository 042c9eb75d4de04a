/** An application that is ended while its job holds a lock, for min-hold.spec.ts. */
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockModule, LockService } from 'nestjs-holdfast';

const [redis = '', key = '', how = 'SIGTERM'] = process.argv.slice(2);

@Module({ imports: [LockModule.forRoot({ redis, ttl: '1m', shutdownTimeout: 50 })] })
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
app.enableShutdownHooks();
await app
  .get(LockService)
  .run(key, { minHold: '20s' }, ({ signal }) => {
    process.kill(process.pid, how);
    return new Promise((resolve) => {
      signal.addEventListener('abort', resolve);
    });
  })
  .catch(() => undefined);
