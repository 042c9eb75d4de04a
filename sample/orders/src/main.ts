import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const port = Number(process.env.PORT ?? 3000);
const app = await NestFactory.create(AppModule);
app.enableShutdownHooks();
await app.listen(port);

const store = process.env.REDIS_URL === undefined ? 'in-process memory store' : 'Redis';
new Logger('Shop').log(`
  The shop is open on http://localhost:${String(port)}, its locks are in the ${store}. Try, in another terminal:

  # two payments of one order at once: one 201, one 409 with Retry-After
  curl -is -X POST localhost:${String(port)}/orders/42/pay & curl -is -X POST localhost:${String(port)}/orders/42/pay; wait

  # two shipments of one order at once: the second waits in line, both are 201
  curl -is -X POST localhost:${String(port)}/orders/42/ship & curl -is -X POST localhost:${String(port)}/orders/42/ship; wait

  # transfers in both directions at once: two keys each, no deadlock, no lost money
  curl -s -X POST localhost:${String(port)}/accounts/alice/transfer/bob/10 & curl -s -X POST localhost:${String(port)}/accounts/bob/transfer/alice/5; wait
  curl -s localhost:${String(port)}/accounts

  # what has happened so far, and whether an order is locked right now
  curl -s localhost:${String(port)}/orders/42`);
