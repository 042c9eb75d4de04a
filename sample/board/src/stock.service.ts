import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { WithLock } from 'nestjs-holdfast';

@Injectable()
export class StockService {
  /** Short, and often wanted by several processes at once. */
  @WithLock('order:<orderId>', { wait: '1m' })
  async pay(orderId: number): Promise<void> {
    await sleep(300 + orderId * 200);
  }

  /**
   * Nobody else counts meanwhile. A TTL as long as this one is a mistake that happens: whoever freezes keeps the key from all others for
   * two minutes.
   */
  @WithLock('stock:count', { ttl: '2m', wait: '10m' })
  async count(): Promise<void> {
    console.log('counts');
    await sleep(1_500);
  }
}
