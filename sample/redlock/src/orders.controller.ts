import { Controller, Param, Post } from '@nestjs/common';
import { OrdersService } from './orders.service.js';

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  /** 201 for who paid, 409 for who came second, 503 when no majority of the masters is there. */
  @Post(':id/pay')
  async pay(@Param('id') id: string): Promise<{ readonly paid: string }> {
    await this.orders.pay(id);
    return { paid: id };
  }
}
