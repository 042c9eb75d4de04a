import { Controller, Get, Param, Post } from '@nestjs/common';
import { LockService, WithLock, type LockInspection } from 'nestjs-holdfast';
import { OrdersService, type Payment } from './orders.service.js';

@Controller('orders')
export class OrdersController {
  constructor(
    private readonly orders: OrdersService,
    private readonly locks: LockService,
  ) {}

  /** The service's method takes the lock; a second payment at the same time answers 409. */
  @Post(':id/pay')
  pay(@Param('id') id: string): Promise<Payment> {
    return this.orders.pay(id);
  }

  /** The handler takes the lock, and waits for it in line. */
  @Post(':id/ship')
  @WithLock('shipment:<id>', { wait: '10s' })
  async ship(@Param('id') id: string): Promise<{ readonly shipped: string }> {
    await this.orders.ship(id);
    return { shipped: id };
  }

  @Get(':id')
  async show(
    @Param('id') id: string,
  ): Promise<{ readonly payments: number; readonly lock: LockInspection }> {
    return { payments: this.orders.paymentsOf(id), lock: await this.locks.inspect(`order:${id}`) };
  }
}
