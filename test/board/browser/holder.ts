/** An application that holds "order:42" until somebody takes it away, and says what it was told then. */
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockModule, LockService, type LockLostError } from 'nestjs-holdfast';
import { LockAdmin, LockAdminModule } from 'nestjs-holdfast/admin';
import { eventually } from '../../support/eventually.js';

@Module({
  imports: [
    LockModule.forRoot({
      redis: process.env.REDIS_URL ?? '',
      ttl: '60s',
      instance: { application: 'billing' },
    }),
    LockAdminModule.forRoot(),
  ],
})
class BillingModule {}

const app = await NestFactory.createApplicationContext(BillingModule, { logger: false });
const admin = app.get(LockAdmin, { strict: false });
// Who is frozen earlier than this is nobody that others know of, or can tell anything.
await eventually(async () =>
  (await admin.instances()).some((each) => each.pid === process.pid && each.isListening),
);
const { signal } = await app.get(LockService).acquire('order:42');
signal.addEventListener('abort', () => {
  console.log(`lost: ${(signal.reason as LockLostError).detail}`);
});
console.log('held');
