/** One worker: takes jobs from the queue until it is empty. main.ts starts three of them. */
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockModule, LockWorkExhaustedError } from 'nestjs-holdfast';
import { Database } from './database.js';
import { PayoutsService } from './payouts.service.js';

const redis = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';

@Module({
  imports: [LockModule.forRoot({ redis })],
  providers: [PayoutsService, { provide: Database, useFactory: () => new Database(redis) }],
})
class WorkerModule {}

const app = await NestFactory.createApplicationContext(WorkerModule, { logger: ['error', 'warn'] });
const database = app.get(Database);
const payouts = app.get(PayoutsService);

for (let id = await database.nextJob(); id !== null; id = await database.nextJob()) {
  try {
    await payouts.payOut(id); // resolves when the job is done, by whomever
  } catch (error) {
    console.error(`job ${id}:`, error);
    if (!(error instanceof LockWorkExhaustedError)) continue; // it is in the queue still
  }
  await database.removeJob(id);
}
await app.close();
