import { BullModule, getQueueToken, Processor, WorkerHost } from '@nestjs/bullmq';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { QueueEvents, type Job, type Queue } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LockModule, LockService, WithLock } from 'nestjs-holdfast';
import { deferred } from '../../../support/eventually.js';
import { RedisServer } from '../../../support/redis-server.js';
import { PayoutProcessor, work, type Payout } from '../../patterns/consumers.js';

@Processor('refunds')
class RefundProcessor extends WorkerHost {
  @WithLock('refund:<job.data.account>')
  async process(job: Job<Payout>): Promise<string> {
    return `refunded ${job.data.account}`;
  }
}

describe('a worker of BullMQ', () => {
  let redis: RedisServer;
  let app: INestApplicationContext;
  const opened: QueueEvents[] = [];

  beforeAll(async () => {
    redis = await RedisServer.start();
    const connection = { host: '127.0.0.1', port: redis.port };
    const module = await Test.createTestingModule({
      imports: [
        LockModule.forRoot({ redis: redis.url }),
        BullModule.forRoot({ connection }),
        BullModule.registerQueue({ name: 'payouts' }, { name: 'refunds' }),
      ],
      providers: [PayoutProcessor, RefundProcessor],
    }).compile();
    app = await module.init();
  });
  afterAll(async () => {
    await Promise.all(opened.map((events) => events.close()));
    await app.close();
    await redis.stop();
  });

  async function open(name: string): Promise<{ queue: Queue<Payout>; events: QueueEvents }> {
    const events = new QueueEvents(name, { connection: { host: '127.0.0.1', port: redis.port } });
    opened.push(events);
    await events.waitUntilReady();
    return { queue: app.get<Queue<Payout>>(getQueueToken(name)), events };
  }

  // The code of docs/recipes.md.
  it('puts a job whose lock is held back into the queue, and takes it up again', async () => {
    const { queue, events } = await open('payouts');
    const [gate, reached] = [deferred(), deferred()];
    let [busy, most] = [0, 0];
    work.pay = async (account) => {
      most = Math.max(most, (busy += 1));
      reached.resolve();
      await gate.promise;
      busy -= 1;
      return `paid ${account}`;
    };
    const delayed = new Promise<string>((resolve) => {
      events.once('delayed', ({ jobId }) => {
        resolve(jobId);
      });
    });
    const first = await queue.add('pay', { account: '7' }, { attempts: 1 });
    await reached.promise;
    const second = await queue.add('pay', { account: '7' }, { attempts: 1 });
    expect(await delayed).toBe(second.id);
    gate.resolve();
    expect(await first.waitUntilFinished(events)).toBe('paid 7');
    expect(await second.waitUntilFinished(events)).toBe('paid 7');
    expect(most).toBe(1);
  });

  it('HF-40 has a failedReason that names the lock, and no value of its key', async () => {
    const { queue, events } = await open('refunds');
    const lock = await app.get(LockService).acquire('refund:7');
    const job = await queue.add('refund', { account: '7' }, { attempts: 1 });
    const failure = job.waitUntilFinished(events);
    await expect(failure).rejects.toThrow(
      'The lock refund:<job.data.account> is held by another caller.',
    );
    await lock.release();
  });
});
