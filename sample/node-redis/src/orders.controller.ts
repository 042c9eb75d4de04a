import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, Param, Post } from '@nestjs/common';
import { WithLock } from 'nestjs-holdfast';

@Controller('orders')
export class OrdersController {
  private readonly paid = new Map<string, number>();

  /** One payment of an order at a time: another one meanwhile is answered by 409. */
  @Post(':orderId/pay')
  @WithLock('order:<orderId>')
  async pay(@Param('orderId') orderId: string): Promise<{ orderId: string; payments: number }> {
    const before = this.paid.get(orderId) ?? 0;
    await sleep(300); // the payment provider
    this.paid.set(orderId, before + 1);
    return { orderId, payments: before + 1 };
  }
}
