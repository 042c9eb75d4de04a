import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictException, Injectable } from '@nestjs/common';
import { WithLock } from 'nestjs-holdfast';
import { Ledger } from './ledger.js';

/** Looks whether the order is paid, has it paid, writes that down: right as long as nobody else does so meanwhile. */
@Injectable()
export class OrdersService {
  constructor(private readonly ledger: Ledger) {}

  async pay(orderId: string): Promise<void> {
    if ((await this.ledger.paymentsOf(orderId)) > 0) {
      throw new ConflictException({ code: 'ALREADY_PAID' });
    }
    await sleep(30); // the payment provider takes its time
    await this.ledger.addPayment(orderId);
  }
}

/** One payment of an order at a time, in whatever process; who comes second answers 409 at once. */
@Injectable()
export class LockedOrdersService extends OrdersService {
  @WithLock('order:<orderId>')
  override pay(orderId: string): Promise<void> {
    return super.pay(orderId);
  }
}

/** The same, but who comes second stands in line. */
@Injectable()
export class QueuedOrdersService extends OrdersService {
  @WithLock('order:<orderId>', { wait: '10s' })
  override pay(orderId: string): Promise<void> {
    return super.pay(orderId);
  }
}
