import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const port = process.env.PORT ?? '3000';
const app = await NestFactory.create(AppModule);
app.enableShutdownHooks();
await app.listen(port);

const shop = `localhost:${port}`;
const locks =
  process.env.REDIS_URL === undefined
    ? 'in the memory of this process (REDIS_URL=redis://localhost:6379 npm start: in Redis, for several processes)'
    : 'in Redis: start another process with the same REDIS_URL and another PORT';
new Logger('Shop').log(`
  The shop is open on http://${shop}
  Its locks are ${locks}

  Try, in another terminal:

  # two payments of one order at once: one answers 201, the other at once 409 with Retry-After
  curl -isw '\\n\\n' -X POST ${shop}/orders/42/pay & curl -isw '\\n\\n' -X POST ${shop}/orders/42/pay; wait

  # two shipments of one order at once: the second waits in line, both answer 201
  curl -isw '\\n\\n' -X POST ${shop}/orders/42/ship & curl -isw '\\n\\n' -X POST ${shop}/orders/42/ship; wait

  # transfers in both directions at once: two keys each, no deadlock, no lost money
  curl -sw '\\n' -X POST ${shop}/accounts/alice/transfer/bob/10 & curl -sw '\\n' -X POST ${shop}/accounts/bob/transfer/alice/5; wait
  curl -sw '\\n' ${shop}/accounts

  # how often an order was paid in this process, and whether it is locked right now
  curl -sw '\\n' ${shop}/orders/42
`);
