import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Module } from '@nestjs/common';
import { GraphQLModule } from '@nestjs/graphql';
import { LockModule } from 'nestjs-holdfast';
import { OrdersService } from './orders.service.js';
import { OrdersController, OrdersGateway, OrdersProcedures, OrdersResolver } from './transports.js';

const { REDIS_URL: redis } = process.env;

@Module({
  imports: [
    LockModule.forRoot(redis === undefined ? { store: 'memory' } : { redis }),
    GraphQLModule.forRoot<ApolloDriverConfig>({
      driver: ApolloDriver,
      autoSchemaFile: true,
      includeStacktraceInErrorResponses: false,
    }),
  ],
  controllers: [OrdersController, OrdersProcedures],
  providers: [OrdersService, OrdersResolver, OrdersGateway],
})
export class AppModule {}
