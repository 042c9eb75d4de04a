/** One instance of an application with a cron job. main.ts starts three of them. */
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { LockModule } from 'nestjs-holdfast';
import { ReportJob } from './report.job.js';

const redis = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';

// No two machines have the same time: the clock of this one is behind by so much, so its jobs fire later by so much.
const behindMs = Number(process.env.BEHIND_MS ?? 0);
const now = Date.now;
Date.now = () => now() - behindMs;

@Module({
  imports: [ScheduleModule.forRoot(), LockModule.forRoot({ redis })],
  providers: [ReportJob],
})
class AppModule {}

await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
console.log('ready');
