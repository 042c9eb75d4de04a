import {
  applyDecorators,
  Body,
  Controller,
  Headers,
  Injectable,
  Param,
  ParseIntPipe,
  Post,
  Query,
  Req,
  UsePipes,
  type PipeTransform,
  type ModuleMetadata,
  type Type,
} from '@nestjs/common';
import { Args, Int, Mutation, Resolver } from '@nestjs/graphql';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { Cron } from '@nestjs/schedule';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { afterEach, describe, expect, it } from '@jest/globals';
import { LockConfigurationError, WithLock } from 'nestjs-holdfast';
import { createTestLocks } from 'nestjs-holdfast/testing';
import { PARAMETERS } from '../../lib/nest/transports/transport.js';
import { closeHttpApps, startHttpApp } from './http-app.js';

afterEach(closeHttpApps);

class Dto {
  id = '';
}

class TrimPipe implements PipeTransform {
  transform(value: unknown): unknown {
    return value;
  }
}

/** A class that has one method, `pay`. Its key and its one parameter are given. */
function having(
  key: string,
  {
    reached = Post('orders/:id'),
    parameter = () => undefined,
    type = String,
    also = () => undefined,
  }: {
    readonly reached?: MethodDecorator;
    readonly parameter?: ParameterDecorator;
    readonly type?: unknown;
    readonly also?: ClassDecorator;
  },
): Type {
  @also
  class Orders {
    @reached
    @WithLock(key)
    async pay(@parameter id: unknown): Promise<unknown> {
      return id;
    }
  }
  Reflect.defineMetadata('design:paramtypes', [type], Orders.prototype, 'pay');
  return Orders;
}

const controller = (key: string, parts: Parameters<typeof having>[1]): ModuleMetadata => ({
  controllers: [having(key, { also: Controller(), ...parts })],
});

const RAW =
  '@WithLock on Orders.pay: the key "order:<request.params.id>" has <request.params.id>, which is raw. ';

/** Adds a row with its raw path, why that is refused, and what to write. */
const CONVERTED: readonly (readonly [string, string, Parameters<typeof having>[1], string])[] = [
  [
    'a pipe',
    'request.params.id',
    { parameter: Param('id', ParseIntPipe) },
    'ParseIntPipe may change it',
  ],
  [
    'an object of a pipe',
    'request.params.id',
    { parameter: Param('id', new ParseIntPipe()) },
    'ParseIntPipe may change it',
  ],
  [
    'a pipe without a name',
    'request.params.id',
    { parameter: Param('id', class extends ParseIntPipe {}) },
    'A pipe without a name may change it',
  ],
  [
    'a pipe without a class',
    'request.params.id',
    { parameter: Param('id', Object.assign(Object.create(null), { transform: String })) },
    'A pipe without a name may change it',
  ],
  [
    'a type without a name',
    'request.params.id',
    { parameter: Param('id'), type: (() => class {})() },
    'has a type without a name, to which',
  ],
  ['a type', 'request.params.id', { parameter: Param('id'), type: Number }, 'has the type Number'],
  ['a list', 'request.query.id.0', { parameter: Query('id'), type: Array }, 'has the type Array'],
  [
    'a header',
    'request.headers.X-Id',
    { parameter: Headers('x-id'), type: Number },
    'has the type Number',
  ],
  ['the class of a body', 'request.body.id', { parameter: Body(), type: Dto }, 'has the type Dto'],
  ['the class of all', 'request.params.id', { parameter: Param(), type: Dto }, 'has the type Dto'],
  [
    'the class of all, by an empty name',
    'request.params.id',
    { parameter: Param(''), type: Dto },
    'has the type Dto',
  ],
  [
    'a pipe of the method',
    'request.body.id',
    {
      parameter: Body(),
      type: Object,
      reached: applyDecorators(Post(), UsePipes(TrimPipe)),
    },
    'TrimPipe may change it',
  ],
  [
    'the request, in short',
    'params.id',
    { parameter: Param('id'), type: Number },
    'has the type Number',
  ],
  [
    'a microservice without decorators',
    'request.body.id',
    { reached: MessagePattern('pay'), type: Dto },
    'has the type Dto',
  ],
  [
    'a microservice',
    'request.body.id',
    { reached: MessagePattern('pay'), parameter: Payload('id', ParseIntPipe) },
    'ParseIntPipe',
  ],
];

describe('a key that reads from the raw request what pipes may convert', () => {
  it.each(CONVERTED)('is refused at the start: %s', async (_what, path, parts, reason) => {
    const error: unknown = await startHttpApp(controller(`order:<${path}>`, parts)).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(String(error)).toContain('which is raw');
    expect(String(error)).toContain(reason);
  });

  it('is refused with the spelling to use', async () => {
    const message = async (
      parts: Parameters<typeof having>[1],
      key = 'order:<request.params.id>',
    ) =>
      startHttpApp(controller(key, parts)).then(undefined, (error: unknown) =>
        error instanceof Error ? error.message : error,
      );
    const after = ', which is read after the pipes.';
    expect(await message({ parameter: Param('id', ParseIntPipe) })).toBe(
      `${RAW}ParseIntPipe may change it later, so "42" and "042" could be two keys of one thing. Write <id>${after}`,
    );
    expect(await message({ parameter: Param('id'), type: Number })).toBe(
      `${RAW}Its parameter has the type Number, to which a pipe may convert it later, so "42" and "042" could be two keys of one ` +
        `thing. Write <id>${after}`,
    );
    expect(await message({ parameter: Body(), type: Dto }, 'a:<request.body.order.id>')).toContain(
      `Write <id.order.id>${after}`,
    );
    expect(
      await message({ parameter: Body('order'), type: Dto }, 'a:<request.body.order.id>'),
    ).toContain(`Write <id.id>${after}`);
  });

  it('is refused with the position of a parameter that has no name of its own', async () => {
    @Controller()
    class Orders {
      @Post('orders/:id')
      @WithLock('order:<request.params.id>')
      async pay(@Param() { id }: Dto): Promise<string> {
        return id;
      }

      @Post('others/:id')
      async named(@Param('id') params: number): Promise<number> {
        return params;
      }
    }
    await expect(startHttpApp({ controllers: [Orders] })).rejects.toThrow('Write <0.id>,');
    Reflect.defineMetadata('design:paramtypes', [Object], Orders.prototype, 'pay');
    await startHttpApp({ controllers: [Orders] });
  });

  it('is refused on a gateway and a resolver', async () => {
    @WebSocketGateway()
    class Gateway {
      @SubscribeMessage('pay')
      @WithLock('order:<request.body.id>')
      async pay(@MessageBody('id', ParseIntPipe) id: number): Promise<number> {
        return id;
      }
    }
    @WebSocketGateway()
    class Undecorated {
      @WithLock('order:<request.body.id>')
      @SubscribeMessage('pay')
      async pay(_client: object, order: Dto): Promise<string> {
        return order.id;
      }
    }
    @Resolver()
    class Payments {
      @Mutation(() => Int)
      @WithLock('order:<request.params.id>')
      async pay(@Args('id', { type: () => Int }, ParseIntPipe) id: number): Promise<number> {
        return id;
      }
    }
    await expect(startHttpApp({ providers: [Gateway] })).rejects.toThrow('Write <id>,');
    await expect(startHttpApp({ providers: [Undecorated] })).rejects.toThrow('Write <order.id>,');
    await expect(startHttpApp({ providers: [Payments] })).rejects.toThrow('Write <id>,');
  });

  it.each<[string, string, Parameters<typeof having>[1]]>([
    ['a text', 'request.params.id', { parameter: Param('id') }],
    ['another part', 'request.params.id', { parameter: Body('id', ParseIntPipe) }],
    ['another name', 'request.params.id', { parameter: Param('shop', ParseIntPipe) }],
    ['an interface', 'request.body.id', { parameter: Body(), type: Object }],
    ['no type, as of esbuild', 'request.params.id', { parameter: Param('id'), type: undefined }],
    ['the request itself', 'request.params.id', { parameter: Req(), type: Dto }],
    ['a user', 'user.id', { parameter: Param('id', ParseIntPipe) }],
  ])('is accepted where nothing converts it: %s', async (_what, path, parts) => {
    await expect(startHttpApp(controller(`order:<${path}>`, parts))).resolves.toBeDefined();
  });
});

describe('a key that reads from the raw request, beside a decorator of the application', () => {
  it('is accepted, whatever random number Nest has given that decorator', () => {
    const parameter: ParameterDecorator = (prototype, name, index) => {
      const noted = { index, data: 'id', pipes: [ParseIntPipe] };
      const numbered = { '5f__customRouteArgs__:0': noted };
      Reflect.defineMetadata(PARAMETERS, numbered, prototype.constructor, name ?? '');
    };
    const orders = having('order:<request.params.id>', { parameter });
    const { locks } = createTestLocks();
    expect(() => locks.bind(new orders() as object)).not.toThrow();
  });
});

describe('a key that reads the request, on a method that no request reaches', () => {
  const PROBLEM =
    '@WithLock on Orders.pay: the key "order:<request.params.id>" has <request.params.id>, which is read from the request, and no request reaches this ' +
    'method. Take the value from a parameter (<orderId>), or lock where the request is handled.';

  const plain = (): void => undefined;

  it('is refused at the start, on a service and on a controller', async () => {
    const orders = having('order:<request.params.id>', { reached: plain, also: Injectable() });
    await expect(startHttpApp({ providers: [orders] })).rejects.toThrow(
      new LockConfigurationError(PROBLEM),
    );
    await expect(
      startHttpApp(controller('order:<request.params.id>', { reached: plain })),
    ).rejects.toThrow(PROBLEM);
  });

  it('is refused on a cron job', async () => {
    const reached = Cron('0 0 1 1 *');
    const orders = having('order:<request.params.id>', { reached });
    await expect(startHttpApp({ providers: [orders] })).rejects.toThrow(PROBLEM);
  });

  it('is refused when an object is bound', () => {
    const { locks } = createTestLocks();
    const orders = having('order:<request.params.id>', { reached: plain });
    expect(() => locks.bind(new orders() as object)).toThrow(PROBLEM);
  });

  it('is accepted where a decorator of another package may have made a handler of it', async () => {
    const reached = (_prototype: object, _key: unknown, { value }: PropertyDescriptor): void => {
      Reflect.defineMetadata('telegraf:listener', 'start', value as object);
    };
    const orders = having('user:<user.id>', { reached });
    await expect(startHttpApp({ providers: [orders] })).resolves.toBeDefined();
  });

  it('is accepted where another method overrides it', async () => {
    const base = having('order:<request.params.id>', { reached: plain });
    @Controller()
    class Orders extends (base as Type<{ pay(id: unknown): Promise<unknown> }>) {
      @Post('orders/:id')
      @WithLock('order:<id>')
      override async pay(@Param('id', ParseIntPipe) id: number): Promise<number> {
        return id;
      }
    }
    await expect(startHttpApp({ controllers: [Orders] })).resolves.toBeDefined();
  });
});
