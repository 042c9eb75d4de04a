import { Controller, Param, Post } from '@nestjs/common';
import { OrdersService } from './orders.service.js';

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post(':id/pay')
  async pay(@Param('id') id: string): Promise<{ readonly paid: string }> {
    await this.orders.pay(id);
    return { paid: id };
  }
}
