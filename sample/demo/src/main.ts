import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
await app.listen(process.env.PORT ?? 0, '127.0.0.1');
console.log(`The shop is open on ${await app.getUrl()}`);
