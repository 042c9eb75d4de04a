/** An application without a server, for standalone.spec.ts. */
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockError, LockModule, LockService, WithLock } from 'nestjs-holdfast';

const [redis = ''] = process.argv.slice(2);

@Injectable()
class Import {
  @WithLock('import:<file>')
  async run(file: string): Promise<string> {
    return `imported ${file}`;
  }
}

@Module({ imports: [LockModule.forRoot({ redis, shutdownTimeout: '100ms' })], providers: [Import] })
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const outcome = await app
  .get(Import)
  .run('prices')
  .catch((error: unknown) => (error instanceof LockError ? error.code : error));
console.log(outcome);
// Not given back: that is what close() does.
await app.get(LockService).acquire('left', { ttl: '1h' });
await app.close();
