/** Orders of tenants, for cls.spec.ts: nestjs-cls requires Nest, which jest cannot. */
import {
  Controller,
  createParamDecorator,
  Injectable,
  Module,
  Param,
  Post,
  Scope,
  type ExecutionContext,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ClsModule, ClsService, ClsServiceManager, type ClsStore } from 'nestjs-cls';
import { lockKey, WithLock } from 'nestjs-holdfast';
import { Gate } from '../../../nest/gate.js';
import { lockModule, serve } from '../support/serve.js';

interface TenantStore extends ClsStore {
  tenant: string | undefined;
}

interface TenantRequest {
  readonly headers: Readonly<Record<string, string | undefined>>;
  user?: { readonly tenantId: string | undefined };
}

const requestOf = (context: ExecutionContext): TenantRequest =>
  context.switchToHttp().getRequest<TenantRequest>();

let gate = new Gate();

/** The first call stops, and those that are let in beside it do not. */
const work = async (): Promise<void> => {
  if (gate.visits === 0) await gate.pass();
};

@Injectable()
class OrdersService {
  constructor(private readonly cls: ClsService<TenantStore>) {}

  @WithLock(function (this: OrdersService, id: string) {
    return lockKey`${this.cls.get('tenant')}:order:${id}`;
  })
  async byThis(_id: string): Promise<void> {
    await work();
  }

  @WithLock((id: string) => {
    const cls = ClsServiceManager.getClsService<TenantStore>();
    return lockKey`${cls.get('tenant')}:order:${id}`;
  })
  async byArrowFunction(_id: string): Promise<void> {
    await work();
  }
}

/** For all classes that have the context injected under this name. */
const ofTenant = (what: string) =>
  function (this: { readonly cls: ClsService<TenantStore> }, id: string): string {
    return lockKey`${this.cls.get('tenant')}:${what}:${id}`;
  };

@Injectable()
class SharingService {
  constructor(readonly cls: ClsService<TenantStore>) {}

  @WithLock(ofTenant('order'))
  async byShared(_id: string): Promise<void> {
    await work();
  }
}

const Tenant = createParamDecorator(
  (_data: unknown, context: ExecutionContext) => requestOf(context).headers['x-tenant'],
);

@Controller()
class OrdersController {
  constructor(
    private readonly orders: OrdersService,
    private readonly sharing: SharingService,
    private readonly cls: ClsService<TenantStore>,
  ) {}

  @Post('service/:id')
  async service(@Param('id') id: string): Promise<void> {
    await this.orders.byThis(id);
  }

  @Post('arrow/:id')
  async arrow(@Param('id') id: string): Promise<void> {
    await this.orders.byArrowFunction(id);
  }

  @Post('shared/:id')
  async shared(@Param('id') id: string): Promise<void> {
    await this.sharing.byShared(id);
  }

  @Post('handler/:id')
  @WithLock(function (this: OrdersController, id: string) {
    return lockKey`${this.cls.get('tenant')}:order:${id}`;
  })
  async handler(@Param('id') _id: string): Promise<void> {
    await work();
  }

  @Post('user/:id')
  @WithLock('<user.tenantId>:order:<id>')
  async user(@Param('id') id: string): Promise<string> {
    await work();
    return id;
  }

  @Post('header/:id')
  @WithLock('<request.headers.x-tenant>:order:<id>')
  async header(@Param('id') id: string): Promise<string> {
    await work();
    return id;
  }

  @Post('parameter/:id')
  @WithLock('<tenant>:order:<id>')
  async parameter(@Param('id') id: string, @Tenant() tenant: string): Promise<string> {
    await work();
    return tenant + id;
  }

  /** Answers when a call has stopped. */
  @Post('stopped')
  async stopped(): Promise<void> {
    await gate.reached;
  }

  /** Lets it go on; the next first call stops again. */
  @Post('go-on')
  goOn(): void {
    gate.open();
    gate = new Gate();
  }
}

/** Nest makes one for each request. */
@Controller({ scope: Scope.REQUEST })
class RequestController {
  constructor(private readonly cls: ClsService<TenantStore>) {}

  @Post('request-scoped/:id')
  @WithLock(function (this: RequestController, id: string) {
    return lockKey`${this.cls.get('tenant')}:order:${id}`;
  })
  async handler(@Param('id') _id: string): Promise<void> {
    await work();
  }
}

const [adapter, mounted = ''] = process.argv.slice(2);

const setTenant = (cls: ClsService, request: TenantRequest): void => {
  cls.set('tenant', request.headers['x-tenant']);
};
const enhancer = {
  mount: true,
  setup: (cls: ClsService, context: ExecutionContext) => {
    setTenant(cls, requestOf(context));
  },
};
/** Where the context of a request begins. */
const context =
  mounted === 'middleware'
    ? { middleware: { mount: true, setup: setTenant } }
    : { [mounted]: enhancer };

@Module({
  imports: [lockModule(), ClsModule.forRoot({ global: true, ...context })],
  controllers: [OrdersController, RequestController],
  providers: [OrdersService, SharingService],
})
class AppModule {}

const app = await NestFactory.create(
  AppModule,
  adapter === 'fastify' ? new FastifyAdapter() : new ExpressAdapter(),
  { logger: ['warn', 'error'] },
);
app.useGlobalGuards({
  canActivate: (call) => {
    const request = requestOf(call);
    request.user = { tenantId: request.headers['x-tenant'] };
    return true;
  },
});
await app.listen(0, '127.0.0.1');
serve(app, await app.getUrl());
