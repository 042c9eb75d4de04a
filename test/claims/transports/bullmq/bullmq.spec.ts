import { BullModule, getQueueToken, Processor, WorkerHost } from '@nestjs/bullmq';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DelayedError, QueueEvents, type Job, type Queue } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LockModule, LockService, WithLock, type LockedContext } from 'nestjs-holdfast';
import { deferred } from '../../../support/eventually.js';
import { RedisServer } from '../../../support/redis-server.js';

const QUEUE = 'payouts';

interface Payout {
  readonly account: string;
}

const gate = deferred();
const reached = deferred();
let busy = 0;
let most = 0;

/** Back into the queue, until the lock may be free: that uses up no attempt. */
async function later({ args, retryAfterMs }: LockedContext): Promise<never> {
  const [job, token] = args as [Job<Payout>, string];
  await job.moveToDelayed(Date.now() + Math.min(retryAfterMs, 5_000), token);
  throw new DelayedError();
}

@Processor(QUEUE, { concurrency: 2 })
class PayoutProcessor extends WorkerHost {
  @WithLock('payout:<job.data.account>', { ttl: '4s', onLocked: later })
  async pay(job: Job<Payout>, _token?: string): Promise<string> {
    busy += 1;
    most = Math.max(most, busy);
    reached.resolve();
    await gate.promise;
    busy -= 1;
    return `paid ${job.data.account}`;
  }

  @WithLock('refund:<job.data.account>')
  async refund(job: Job<Payout>): Promise<string> {
    return `refunded ${job.data.account}`;
  }

  process(job: Job<Payout>, token?: string): Promise<string> {
    return job.name === 'pay' ? this.pay(job, token) : this.refund(job);
  }
}

describe('a worker of BullMQ', () => {
  let redis: RedisServer;
  let app: INestApplicationContext;
  let queue: Queue<Payout>;
  let events: QueueEvents;

  beforeAll(async () => {
    redis = await RedisServer.start();
    const connection = { host: '127.0.0.1', port: redis.port };
    const module = await Test.createTestingModule({
      imports: [
        LockModule.forRoot({ redis: redis.url }),
        BullModule.forRoot({ connection }),
        BullModule.registerQueue({ name: QUEUE }),
      ],
      providers: [PayoutProcessor],
    }).compile();
    events = new QueueEvents(QUEUE, { connection });
    await events.waitUntilReady();
    app = await module.init();
    queue = app.get<Queue<Payout>>(getQueueToken(QUEUE));
  });
  afterAll(async () => {
    await events.close();
    await app.close();
    await redis.stop();
  });

  it('puts a job whose lock is held back into the queue, and takes it up again', async () => {
    const options = { attempts: 1 };
    const delayed = new Promise<string>((resolve) => {
      events.once('delayed', ({ jobId }) => {
        resolve(jobId);
      });
    });
    const first = await queue.add('pay', { account: '7' }, options);
    await reached.promise;
    const second = await queue.add('pay', { account: '7' }, options);
    expect(await delayed).toBe(second.id);
    gate.resolve();
    expect(await first.waitUntilFinished(events)).toBe('paid 7');
    expect(await second.waitUntilFinished(events)).toBe('paid 7');
    expect(most).toBe(1);
  });

  it('HF-40 has a failedReason that names the lock, and no value of its key', async () => {
    const lock = await app.get(LockService).acquire('refund:7');
    const job = await queue.add('refund', { account: '7' }, { attempts: 1 });
    const failure = job.waitUntilFinished(events);
    await expect(failure).rejects.toThrow(
      'The lock refund:<job.data.account> is held by another caller.',
    );
    await lock.release();
  });
});
