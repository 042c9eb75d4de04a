import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';

/** The shop's database, which all its processes share. */
@Injectable()
export class Ledger implements OnApplicationShutdown {
  readonly #redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');

  async paymentsOf(orderId: string): Promise<number> {
    return Number(await this.#redis.hget('payments', orderId));
  }

  async addPayment(orderId: string): Promise<void> {
    await this.#redis.hincrby('payments', orderId, 1);
  }

  onApplicationShutdown(): void {
    this.#redis.disconnect();
  }
}
