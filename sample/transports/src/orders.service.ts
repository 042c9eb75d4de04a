import { Injectable } from '@nestjs/common';
import { WithLock } from 'nestjs-holdfast';

/** The one operation that all transports offer. */
@Injectable()
export class OrdersService {
  @WithLock('order:<orderId>', { ttl: '10s' })
  async pay(orderId: string): Promise<string> {
    return `order ${orderId} is paid`;
  }
}
