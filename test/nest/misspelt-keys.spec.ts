import {
  Controller,
  Get,
  Injectable,
  Param,
  ParseIntPipe,
  Post,
  Version,
  VersioningType,
  type Type,
} from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import { MessagePattern } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { Module } from '@nestjs/common';
import { afterEach, describe, expect, it } from '@jest/globals';
import { LockConfigurationError, LockModule, WithLock } from 'nestjs-holdfast';
import { ADAPTERS, closeHttpApps, startHttpApp } from './http-app.js';

afterEach(closeHttpApps);

const WHERE = '@WithLock on Orders.pay: the key';

/** A controller `Orders` with one handler. */
function controllerOf(
  key: string,
  {
    path = 'orders/:id',
    prefix = '',
  }: { readonly path?: string; readonly prefix?: string | string[] } = {},
): Type {
  @Controller(prefix)
  class Orders {
    @Post(path)
    @WithLock(key)
    async pay(): Promise<string> {
      return 'paid';
    }
  }
  return Orders;
}

describe('a key that names a parameter which the route does not have', () => {
  it('prevents the start, and the error names the one that was meant', async () => {
    await expect(
      startHttpApp({ controllers: [controllerOf('order:<request.params.idd>')] }),
    ).rejects.toThrow(
      new LockConfigurationError(
        `${WHERE} "order:<request.params.idd>" has <request.params.idd>, but its route has no parameter "idd": did you mean <request.params.id>? ` +
          'For a value that is set elsewhere use a key function.',
      ),
    );
  });

  it('is named as it is written, and the one that was meant in the current spelling', async () => {
    await expect(
      startHttpApp({ controllers: [controllerOf('order:<params.idd.0>')] }),
    ).rejects.toThrow(
      'has <params.idd.0>, but its route has no parameter "idd": did you mean <request.params.id.0>?',
    );
  });

  it('is warned of where none is like it, for a guard may set it', async () => {
    const { warnings, post } = await startHttpApp({
      controllers: [controllerOf('order:<request.params.tenant>')],
    });
    expect(warnings).toEqual([
      `${WHERE} "order:<request.params.tenant>" has <request.params.tenant>, but its route has no parameter "tenant" (it has id). Unless a guard sets it, ` +
        'every request is answered with 400.',
    ]);
    expect((await post('/orders/42')).status).toBe(400);
  });

  it.each([
    ['a parameter of the controller', 'o:<request.params.shop>', { prefix: 'shops/:shop' }],
    ['one of several paths', 'o:<request.params.shop>', { prefix: ['shops/:shop', 'all'] }],
    ['a named wildcard', 'o:<request.params.rest.0>', { path: 'files/*rest' }],
    ['an optional parameter', 'o:<request.params.id>', { path: 'orders{/:id}' }],
    ['another part of the request', 'o:<request.body.idd>', {}],
  ])('is not seen in %s', async (_what, key, route) => {
    const { warnings } = await startHttpApp({ controllers: [controllerOf(key, route)] });
    expect(warnings).toEqual([]);
  });

  it('is not looked for in a path with a wildcard that has no name', async () => {
    const orders = controllerOf('order:<request.params.idd>', { path: 'orders/:id/*' });
    const { warnings } = await startHttpApp({ controllers: [orders] });
    expect(warnings.filter((warning) => warning.includes('@WithLock'))).toEqual([]);
  });

  it('is not seen in the prefixes of the application and of its modules, nor in versions', async () => {
    @Controller({ path: 'orders', version: '2' })
    class Orders {
      @Post('first/:id')
      @WithLock('o:<request.params.tenant>:<request.params.region>:<request.params.id>')
      async pay(): Promise<string> {
        return 'paid';
      }

      @Version('3')
      @Post('second/:id')
      @WithLock('o:<request.params.id>')
      async refund(): Promise<string> {
        return 'refunded';
      }
    }
    @Module({ controllers: [Orders] })
    class OrdersModule {}
    const { post, warnings } = await startHttpApp(
      {
        imports: [
          OrdersModule,
          RouterModule.register([
            { path: ':region', children: [{ path: 'shop', module: OrdersModule }] },
          ]),
        ],
      },
      {
        configure: (app) => {
          app.setGlobalPrefix('api/:tenant');
          app.enableVersioning({ type: VersioningType.URI });
        },
      },
    );
    expect(warnings).toEqual([]);
    expect((await post('/api/acme/v2/eu/shop/orders/first/42')).body).toBe('paid');
  });

  it('is looked for in the route of the class that inherits the handler', async () => {
    abstract class Base {
      @Get()
      @WithLock('o:<request.params.tenant>')
      async list(): Promise<string> {
        return 'all';
      }
    }
    @Controller('tenants/:tenant')
    class Tenants extends Base {}
    @Controller('teams/:tenants')
    class Teams extends Base {}
    await startHttpApp({ controllers: [Tenants] });
    await expect(startHttpApp({ controllers: [Teams] })).rejects.toThrow('did you mean');
  });
});

describe.each(ADAPTERS)('a value of the key that no request has, on %s', (adapter) => {
  it('is logged once, with the key, and then for debugging, while clients get 400', async () => {
    @Controller('orders')
    class Orders {
      @Post()
      @WithLock('order:<user.id>:<request.body.id>')
      async pay(): Promise<string> {
        return 'paid';
      }
    }
    const started = await startHttpApp({ controllers: [Orders] }, { adapter });
    const { post, warnings, debugged } = started;
    const bodies = [await post('/orders', { id: 1 }), await post('/orders', { id: 'geheim' })];
    for (const { status, body } of bodies) {
      expect(status).toBe(400);
      expect(body).toEqual({
        statusCode: 400,
        message: 'A value that identifies what to lock is missing or not valid.',
        error: 'Bad Request',
        code: 'LOCK_KEY_INVALID',
      });
    }
    expect(warnings).toEqual([
      '@WithLock on Orders.pay: <user.id> is undefined, because <user> is undefined. Make sure that it is set before the call. The request ' +
        'was answered with 400, and this is logged once. If all requests are, the key of this handler ("order:<user.id>:<request.body.id>") is ' +
        'wrong: is a name misspelt, or set by a guard that this route does not have?',
    ]);
    expect(debugged.filter((message) => message.includes('@WithLock on Orders.pay'))).toEqual([
      '@WithLock on Orders.pay: <user.id> is undefined, because <user> is undefined. Make sure that it is set before the call.',
    ]);
  });
});

describe('a parameter that is written with a colon', () => {
  class Decorated {
    static with(key: string): () => unknown {
      return () => {
        class Orders {
          @WithLock(key)
          async pay(orderId: string): Promise<string> {
            return orderId;
          }
        }
        return Orders;
      };
    }
  }

  it.each(['order::orderId', 'order/:orderId', ':orderId', 'a:<orderId>/:orderId'])(
    'is refused in "%s", with what was meant',
    (key) => {
      expect(Decorated.with(key)).toThrow(
        new LockConfigurationError(
          `${WHERE} ${JSON.stringify(key)} has ":orderId", which is plain text, so all calls share one lock. Write <orderId>.`,
        ),
      );
    },
  );

  it.each(['a:b', 'a::b', 'order:<orderId>:pay', 'report/:daily', '<orderId>:orderId'])(
    'is not seen in "%s"',
    (key) => {
      expect(Decorated.with(key)).not.toThrow();
    },
  );

  it('is warned of where it may be meant as text', async () => {
    @Controller('orders')
    class Orders {
      @Post(':id')
      @WithLock('order:orderId')
      async pay(@Param('id') orderId: string): Promise<string> {
        return orderId;
      }
    }
    const { warnings } = await startHttpApp({ controllers: [Orders] });
    expect(warnings).toEqual([
      `${WHERE} "order:orderId" has ":orderId", which is plain text, so all calls share one lock. For the parameter write <orderId>.`,
    ]);
  });

  it.each([
    ['order:orderId', ':orderId'],
    ['order:#orderId', '#orderId'],
    ['shop/orderId/pay', '/orderId'],
    ['order:<tenant>:orderId', ':orderId'],
    ['order.orderId', '.orderId'],
  ])('is warned of in "%s" on a provider, with brackets forgotten', async (key, text) => {
    expect(await warningsOf(key)).toEqual([
      `${WHERE} ${JSON.stringify(key)} has "${text}", which is plain text, so all calls share one lock. For the parameter write <orderId>.`,
    ]);
  });

  it.each([
    'orderId', // the first word says what is locked
    'order:<orderId>:orderId',
    'order:<1>:orderId',
    'order:pay-orderId',
    'order:orderId-<tenant>',
    'order:orderId<tenant>',
    'order:orderIds',
    'order:<tenant>',
  ])('is not warned of in "%s"', async (key) => {
    expect(await warningsOf(key)).toEqual([]);
  });

  async function warningsOf(key: string): Promise<readonly string[]> {
    @Injectable()
    class Orders {
      @WithLock(key)
      async pay(tenant: string, orderId: string): Promise<string> {
        return tenant + orderId;
      }
    }
    return (await startHttpApp({ providers: [Orders] })).warnings;
  }

  it('is refused, or warned of, where a parameter of the route has that name', async () => {
    await expect(startHttpApp({ controllers: [controllerOf('order::id')] })).rejects.toThrow(
      `${WHERE} "order::id" has ":id", which is plain text, so all calls share one lock. Write <request.params.id>.`,
    );
    const { warnings } = await startHttpApp({ controllers: [controllerOf('order:id')] });
    expect(warnings.join()).toContain('For the parameter of the route write <request.params.id>.');
    const slashes = await startHttpApp({ controllers: [controllerOf('order/#id')] });
    expect(slashes.warnings.join()).toContain('has "#id", which is plain text');
    const read = await startHttpApp({
      controllers: [controllerOf('order/<request.params.id>/id')],
    });
    expect(read.warnings).toEqual([]);
  });
});

describe('a key that spells a part of the request as if it were a parameter', () => {
  const deprecated = (key: string, written: string, current: string): string =>
    `${WHERE} ${JSON.stringify(key)} has ${written}, which looks like a parameter and is read from the request. This spelling is deprecated. ` +
    `Write ${JSON.stringify(current)}.`;

  it('works, with one warning for its template when the application starts', async () => {
    abstract class Base {
      @Post('pay/:id')
      @WithLock(['order:<params.id>:<params.id>', 'shop:<request.headers.x-shop>', 'by:<user.id>'])
      async pay(): Promise<string> {
        return 'paid';
      }
    }
    @Controller('orders')
    class Orders extends Base {}
    @Controller('others')
    class Others extends Base {}
    const guard = (request: { user?: object }, _response: unknown, next: () => void): void => {
      request.user = { id: 7 };
      next();
    };
    const { post, warnings } = await startHttpApp(
      { controllers: [Orders, Others] },
      { configure: (app) => app.use(guard) },
    );
    const headers = { 'x-shop': 'north' };
    for (const path of ['/orders/pay/42', '/orders/pay/43', '/others/pay/42'])
      expect((await post(path, {}, { headers })).body).toBe('paid');
    expect(warnings).toEqual([
      deprecated(
        'order:<params.id>:<params.id>',
        '<params.id>',
        'order:<request.params.id>:<request.params.id>',
      ).replace('on Orders.pay', 'on Base.pay'),
    ]);
  });

  it('has a warning for each template', async () => {
    @Controller()
    class Orders {
      @Post(':id')
      @WithLock(['order:<params.id>', 'shop:<headers.x-shop>'])
      async pay(): Promise<string> {
        return 'paid';
      }
    }
    expect((await startHttpApp({ controllers: [Orders] })).warnings).toEqual([
      deprecated('order:<params.id>', '<params.id>', 'order:<request.params.id>'),
      deprecated('shop:<headers.x-shop>', '<headers.x-shop>', 'shop:<request.headers.x-shop>'),
    ]);
  });

  it('has one on other transports, too', async () => {
    @Controller()
    class Orders {
      @MessagePattern('pay')
      @WithLock('order:<body.id>')
      async pay(): Promise<string> {
        return 'paid';
      }
    }
    expect((await startHttpApp({ controllers: [Orders] })).warnings).toEqual([
      deprecated('order:<body.id>', '<body.id>', 'order:<request.body.id>'),
    ]);
  });

  it('has none where the application does not start', async () => {
    @Controller()
    class Orders {
      @Post(':id')
      @WithLock('order:<params.id>')
      async pay(@Param('id', ParseIntPipe) id: number): Promise<number> {
        return id;
      }
    }
    const warnings: string[] = [];
    const logger = {
      log: () => undefined,
      error: () => undefined,
      warn: (text: string) => warnings.push(text),
    };
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory' })],
      controllers: [Orders],
    })
      .setLogger(logger)
      .compile();
    await expect(module.init()).rejects.toThrow('Write <id>, which is read after the pipes.');
    expect(warnings).toEqual([]);
    await module.close();
  });
});
