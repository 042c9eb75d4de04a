import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { LockService, WithLock } from 'nestjs-holdfast';

export interface Payment {
  readonly order: string;
  readonly payment: number;
  /** Send it along to whatever stores the payment, and let that refuse smaller ones. */
  readonly fencingToken: number | undefined;
}

@Injectable()
export class OrdersService {
  readonly #payments = new Map<string, number>();

  constructor(private readonly locks: LockService) {}

  @WithLock('order:<orderId>')
  async pay(orderId: string): Promise<Payment> {
    await sleep(1_000); // the payment provider takes its time
    const payment = this.paymentsOf(orderId) + 1;
    this.#payments.set(orderId, payment);
    return { order: orderId, payment, fencingToken: this.locks.current()?.fencingToken };
  }

  async ship(orderId: string): Promise<void> {
    // By hand, for a part of the work only; the signal aborts if the lock is lost.
    await this.locks.run(lockOf(orderId), async ({ signal }) => {
      await sleep(500, undefined, { signal });
    });
  }

  paymentsOf(orderId: string): number {
    return this.#payments.get(orderId) ?? 0;
  }
}

const lockOf = (orderId: string): string => `parcel:${encodeURIComponent(orderId)}`;
