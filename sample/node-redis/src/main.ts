/** `REDIS_URL=redis://localhost:6379 npm run sample:node-redis`: locks in an application that has node-redis, and no ioredis. */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const app = await NestFactory.create(AppModule);
app.enableShutdownHooks();
await app.listen(process.env.PORT ?? '3000');
