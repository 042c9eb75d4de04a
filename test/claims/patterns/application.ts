/**
 * An application with the recipes of docs/recipes.md that need one, for applications.spec.ts: jest cannot load GraphQL and nestjs-cls.
 * Each recipe is on the page as it is here.
 */
import { once } from 'node:events';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  Controller,
  Get,
  Injectable,
  Module,
  Param,
  Post,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { Args, GraphQLModule, ID, Mutation, Query, Resolver } from '@nestjs/graphql';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { ClsModule, ClsService, type ClsStore } from 'nestjs-cls';
import { lockKey, LockModule, WithLock } from 'nestjs-holdfast';
import { LockHealthIndicator } from 'nestjs-holdfast/terminus';

interface TenantStore extends ClsStore {
  tenant: string;
}

interface TenantRequest {
  readonly headers: Readonly<Record<string, string | undefined>>;
  user?: { readonly tenantId: string | undefined };
}

@Injectable()
class OrdersService {
  /** An order of this name takes as long as the test wants. */
  async pay(id: string): Promise<string> {
    if (id === 'long') {
      console.log('works');
      await once(process, 'SIGUSR2');
    }
    return `paid ${id}`;
  }
}

const countStock = async (sku: string): Promise<number> => sku.length;
const closeStock = async (sku: string): Promise<void> => {
  console.log(`closed ${sku}`);
};

// recipe
@Resolver()
export class OrdersResolver {
  constructor(private readonly orders: OrdersService) {}

  @Mutation(() => String)
  @WithLock('order:<id>')
  async payOrder(@Args('id', { type: () => ID }) id: string): Promise<string> {
    return this.orders.pay(id);
  }
}
// end

// recipe
@Injectable()
export class Stocks {
  constructor(private readonly cls: ClsService<TenantStore>) {}

  @WithLock(function (this: Stocks, sku: string) {
    return lockKey`${this.cls.get('tenant')}:stock:${sku}`;
  })
  async count(sku: string): Promise<number> {
    return countStock(sku);
  }
}

@Controller('stocks')
export class StocksController {
  @Post(':sku/close')
  @WithLock('<user.tenantId>:stock:<sku>')
  async close(@Param('sku') sku: string): Promise<void> {
    await closeStock(sku);
  }
}
// end

// recipe
@Controller('health')
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly locks: LockHealthIndicator,
  ) {}

  @Get('ready')
  @HealthCheck()
  ready() {
    return this.health.check([() => this.locks.check('locks')]);
  }

  @Get('live')
  live(): string {
    return 'ok';
  }
}
// end

@Controller()
class OtherController {
  constructor(
    private readonly stocks: Stocks,
    private readonly orders: OrdersService,
  ) {}

  @Post('stocks/:sku/count')
  count(@Param('sku') sku: string): Promise<number> {
    return this.stocks.count(sku);
  }

  @Post('orders/:id/pay')
  @WithLock('order:<id>', { wait: '1m' })
  async pay(@Param('id') id: string): Promise<string> {
    return this.orders.pay(id);
  }
}

/** A schema needs a query. */
@Resolver()
class QueryResolver {
  @Query(() => String)
  version(): string {
    return '1';
  }
}

@Injectable()
class TenantGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (context.getType<string>() !== 'http') return true;
    const request = context.switchToHttp().getRequest<TenantRequest>();
    request.user = { tenantId: request.headers['x-tenant'] };
    return true;
  }
}

@Module({
  imports: [
    LockModule.forRoot({ redis: process.env.REDIS_URL ?? '' }),
    GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true }),
    ClsModule.forRoot({
      global: true,
      middleware: {
        mount: true,
        setup: (cls, request: TenantRequest) => {
          cls.set('tenant', request.headers['x-tenant']);
        },
      },
    }),
    TerminusModule,
  ],
  controllers: [StocksController, HealthController, OtherController],
  providers: [
    OrdersService,
    OrdersResolver,
    QueryResolver,
    Stocks,
    LockHealthIndicator,
    { provide: APP_GUARD, useClass: TenantGuard },
  ],
})
class AppModule {}

// recipe
const app = await NestFactory.create(AppModule);
app.enableShutdownHooks(); // without this line, SIGTERM leaves locks behind
await app.listen(process.env.PORT ?? 3000);
// end
console.log(`open on ${await app.getUrl()}`);
