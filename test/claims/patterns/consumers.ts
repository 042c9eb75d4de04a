/* eslint-disable @typescript-eslint/no-unnecessary-type-arguments -- with the default, the compiler chooses another overload of @EventPattern() */
import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, Payload, RmqContext } from '@nestjs/microservices';
import { DelayedError, type Job } from 'bullmq';
import { lockKey, LockService, WithLock, type LockedContext } from 'nestjs-holdfast';

export interface Payout {
  readonly account: string;
}

export interface Order {
  readonly id: string;
}

/** What the consumers do, which each test says. */
export const work = {
  pay: (account: string): Promise<string> => Promise.resolve(`paid ${account}`),
  ship: (_orderId: string): Promise<void> => Promise.resolve(),
};

const pay = (account: string): Promise<string> => work.pay(account);
const ship = (orderId: string): Promise<void> => work.ship(orderId);

// recipe
/** Returns the job to the queue, until the lock may be free. */
async function later({ args, retryAfterMs }: LockedContext): Promise<never> {
  const [job, token] = args as [Job<Payout>, string];
  await job.moveToDelayed(Date.now() + Math.min(retryAfterMs, 2_000), token);
  throw new DelayedError();
}

@Processor('payouts', { concurrency: 10 })
export class PayoutProcessor extends WorkerHost {
  @WithLock('payout:<job.data.account>', { onLocked: later })
  async process(job: Job<Payout>): Promise<string> {
    return pay(job.data.account);
  }
}

// recipe
@Controller()
export class ShipmentsController {
  constructor(private readonly locks: LockService) {}

  @EventPattern<string>('order.paid')
  async paid(@Payload() order: Order, @Ctx() context: RmqContext): Promise<void> {
    const channel = context.getChannelRef() as {
      ack(message: unknown): void;
      nack(message: unknown, allUpTo: boolean, requeue: boolean): void;
    };
    const message = context.getMessage();
    try {
      await this.locks.run(lockKey`order:${order.id}`, { wait: '2s' }, () => ship(order.id));
      channel.ack(message);
    } catch (error) {
      channel.nack(message, false, false); // a dead letter, which comes back later
      throw error;
    }
  }
}

// recipe
@Controller()
export class ShipmentsConsumer {
  @EventPattern('order.paid')
  @WithLock('order:<order.id>', { wait: '2s' }) // shorter than the consumer's sessionTimeout
  async paid(@Payload() order: Order): Promise<void> {
    await ship(order.id);
  }
}
