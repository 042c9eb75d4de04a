import { Controller, Param, Post } from '@nestjs/common';
import { Args, Mutation, Query, Resolver } from '@nestjs/graphql';
import { GrpcMethod } from '@nestjs/microservices';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { OrdersService } from './orders.service.js';

interface Order {
  readonly id: string;
}

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post(':id/pay')
  pay(@Param('id') id: string): Promise<string> {
    return this.orders.pay(id);
  }
}

@Resolver()
export class OrdersResolver {
  constructor(private readonly orders: OrdersService) {}

  @Mutation(() => String)
  pay(@Args('id', { type: () => String }) id: string): Promise<string> {
    return this.orders.pay(id);
  }

  /** A schema needs a query. */
  @Query(() => String)
  shop(): string {
    return 'open';
  }
}

@Controller()
export class OrdersProcedures {
  constructor(private readonly orders: OrdersService) {}

  @GrpcMethod('Orders', 'Pay')
  async pay({ id }: Order): Promise<{ readonly text: string }> {
    return { text: await this.orders.pay(id) };
  }
}

@WebSocketGateway()
export class OrdersGateway {
  constructor(private readonly orders: OrdersService) {}

  @SubscribeMessage('pay')
  pay(@MessageBody() { id }: Order): Promise<string> {
    return this.orders.pay(id);
  }
}
