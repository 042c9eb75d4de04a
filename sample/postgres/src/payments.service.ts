import { Injectable } from '@nestjs/common';
import { WithLock } from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';

@Injectable()
export class PaymentsService {
  /** How many calls are in the section now, in this process. */
  static inside = 0;
  static most = 0;

  @WithLock('order:<orderId>', { wait: '30s', ttl: '5s' })
  async pay(orderId: string): Promise<string> {
    PaymentsService.inside += 1;
    PaymentsService.most = Math.max(PaymentsService.most, PaymentsService.inside);
    await sleep(20);
    PaymentsService.inside -= 1;
    return orderId;
  }
}
