/**
 * `npm run sample:postgres`: locks in a table of PostgreSQL, without Redis. Two applications, each with connections of its
 * own, pay the same order ten times at once, and never two of them at the same moment.
 */
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { PaymentsService } from './payments.service.js';

const APPS = 2;
const CALLS = 10;

const start = () => NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });

const apps = await Promise.all(Array.from({ length: APPS }, start));
const payments = Array.from({ length: CALLS }, (_, index) =>
  apps[index % APPS]!.get(PaymentsService).pay('42'),
);
const paid = await Promise.all(payments);
await Promise.all(apps.map((app) => app.close()));
console.log(`postgres: ${paid.length} payments, at most ${PaymentsService.most} at once`);
if (PaymentsService.most !== 1) process.exitCode = 1;
