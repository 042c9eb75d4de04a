import { Injectable, type DynamicModule } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { LockModule, WithLock } from 'nestjs-holdfast';

export interface Receipt {
  readonly paid: string;
}

/** What a payment does, which each test says. */
export const work = {
  charge: (orderId: string): Promise<Receipt> => Promise.resolve({ paid: orderId }),
};

const charge = (orderId: string): Promise<Receipt> => work.charge(orderId);

// recipe
// The old release: redlock.using([`order:${id}`], 5_000, () => charge(id))

@Injectable()
export class Payments {
  /** What a function returns is the key of redlock, unchanged. */
  @WithLock((id: string) => `order:${id}`, { wait: '2s' })
  async pay(id: string): Promise<Receipt> {
    return charge(id);
  }
}

/** Uses the Redis of redlock, whose keys have no prefix. */
export const lockModule = (client: Redis): DynamicModule =>
  LockModule.forRoot({ redis: client, keyPrefix: '' });
