import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictException, Injectable } from '@nestjs/common';
import { WithLock } from 'nestjs-holdfast';
import { Ledger } from './ledger.js';

@Injectable()
export class OrdersService {
  constructor(private readonly ledger: Ledger) {}

  /** Nothing in here knows how many masters there are. */
  @WithLock('order:<orderId>')
  async pay(orderId: string): Promise<void> {
    if (await this.ledger.isPaid(orderId)) throw new ConflictException({ code: 'ALREADY_PAID' });
    await sleep(30); // the payment provider takes its time
    await this.ledger.addPayment(orderId);
  }
}
