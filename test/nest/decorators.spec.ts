import 'reflect-metadata';
import { runInThisContext } from 'node:vm';
import {
  Controller,
  Get,
  Header,
  HttpCode,
  Injectable,
  Param,
  ParseIntPipe,
  Post,
  SetMetadata,
  UseGuards,
  UseInterceptors,
  UsePipes,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type NestInterceptor,
  type PipeTransform,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { ApiOperation, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { afterEach, describe, expect, it } from '@jest/globals';
import { LockConfigurationError, LockService, WithLock } from 'nestjs-holdfast';
import { map } from 'rxjs';
import { ADAPTERS, closeHttpApps, CONFLICT, startHttpApp } from './http-app.js';

const Role = (role: string) => SetMetadata('role', role);

@Injectable()
class Roles implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    return this.reflector.get<string>('role', context.getHandler()) === 'clerk';
  }
}

@Injectable()
class Wrap implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map((value: unknown) => ({ wrapped: value })));
  }
}

@Injectable()
class Trim implements PipeTransform {
  transform(value: unknown): unknown {
    return typeof value === 'string' ? value.trim() : value;
  }
}

@Controller('above')
class Above {
  @WithLock('order:<id>')
  @Post(':id')
  @HttpCode(202)
  @Header('x-mine', 'yes')
  @Role('clerk')
  @UseGuards(Roles)
  @UseInterceptors(Wrap)
  @UsePipes(Trim)
  @ApiOperation({ summary: 'pays above' })
  async pay(@Param('id') id: string): Promise<string> {
    return id;
  }
}

@Controller('beneath')
class Beneath {
  @Post(':id')
  @HttpCode(202)
  @Header('x-mine', 'yes')
  @Role('clerk')
  @UseGuards(Roles)
  @UseInterceptors(Wrap)
  @UsePipes(Trim)
  @ApiOperation({ summary: 'pays beneath' })
  @WithLock('order:<id>')
  async pay(@Param('id') id: string): Promise<string> {
    return id;
  }
}

@Injectable()
class Listeners {
  readonly heard: string[] = [];

  @WithLock('event', { onLocked: 'skip' })
  @OnEvent('paid')
  async above(id: string): Promise<void> {
    this.heard.push(`above ${id}`);
  }

  @OnEvent('paid')
  @WithLock('event', { onLocked: 'skip', wait: '5s' })
  async beneath(id: string): Promise<void> {
    this.heard.push(`beneath ${id}`);
  }
}

afterEach(closeHttpApps);

describe.each(ADAPTERS)('decorators above and beneath @WithLock, on %s', (adapter) => {
  it.each(['above', 'beneath'])('of routes all work (%s)', async (order) => {
    const { app, post, locks } = await startHttpApp({ controllers: [Above, Beneath] }, { adapter });
    const answer = await post(`/${order}/%207%20`);
    expect(answer).toMatchObject({ status: 202, body: { wrapped: '7' } });
    expect(answer.headers.get('x-mine')).toBe('yes');
    const lock = await locks.acquire('order:7');
    expect(await post(`/${order}/7`)).toMatchObject({ status: 409, body: CONFLICT });
    await lock.release();

    const document = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    const { post: operation } = document.paths[`/${order}/{id}`]!;
    expect(operation!.summary).toBe(`pays ${order}`);
    expect(operation!.parameters).toMatchObject([{ name: 'id', in: 'path' }]);
    expect(Object.keys(operation!.responses)).toEqual(['202']);
  });
});

describe('@OnEvent above and beneath @WithLock', () => {
  it('is called, under the lock', async () => {
    const { app, locks } = await startHttpApp({
      imports: [EventEmitterModule.forRoot()],
      providers: [Listeners],
    });
    const listeners = app.get(Listeners);
    await app.get(EventEmitter2).emitAsync('paid', '1');
    expect(listeners.heard.sort()).toEqual(['above 1', 'beneath 1']);
    const lock = await locks.acquire('event');
    const refused = new Promise((resolve) => locks.on('refused', resolve));
    const emitted = app.get(EventEmitter2).emitAsync('paid', '2');
    await refused;
    await lock.release();
    await emitted;
    expect(listeners.heard).toContain('beneath 2');
    expect(listeners.heard).not.toContain('above 2');
  });
});

/** As such decorators do: a function of its own in place of the method, with its metadata. */
const Transactional =
  (): MethodDecorator =>
  (_target, _name, descriptor): void => {
    const original = descriptor.value as unknown as (...args: unknown[]) => Promise<unknown>;
    const wrapper = async function (this: unknown, ...args: unknown[]): Promise<unknown> {
      return [await original.apply(this, args), 'committed'];
    };
    for (const key of Reflect.getMetadataKeys(original)) {
      Reflect.defineMetadata(key, Reflect.getMetadata(key, original), wrapper);
    }
    descriptor.value = wrapper as never;
  };

describe('a decorator that wraps the method', () => {
  @Injectable()
  class Orders {
    constructor(readonly locks: LockService) {}

    @WithLock('order:<id>')
    @Transactional()
    async beneath(id: string): Promise<unknown> {
      return `${id} ${String(this.locks.current()?.keys)}`;
    }

    @Transactional()
    @WithLock('order:<id>')
    async above(id: string): Promise<unknown> {
      return `${id} ${String(this.locks.current()?.keys)}`;
    }
  }

  @Controller()
  class Routes {
    constructor(readonly locks: LockService) {}

    @Get('beneath/:id')
    @WithLock('order:<id>')
    @Transactional()
    async beneath(@Param('id', ParseIntPipe) id: number): Promise<unknown> {
      return `${id} ${String(this.locks.current()?.keys)}`;
    }

    @Transactional()
    @Get('above/:id')
    @WithLock('order:<id>')
    async above(@Param('id', ParseIntPipe) id: number): Promise<unknown> {
      return `${id} ${String(this.locks.current()?.keys)}`;
    }
  }

  it('leaves the names of its parameters readable, beneath and above', async () => {
    const { app, get } = await startHttpApp({ controllers: [Routes], providers: [Orders] });
    const orders = app.get(Orders);
    expect(await orders.beneath('7')).toEqual(['7 order:7', 'committed']);
    expect(await orders.above('7')).toEqual(['7 order:7', 'committed']);
    expect((await get('/beneath/7')).body).toEqual(['7 order:7', 'committed']);
    expect((await get('/above/7')).body).toEqual(['7 order:7', 'committed']);
  });

  it('does not hide an unknown name', () => {
    expect(() => {
      class Wrong {
        @WithLock('order:<orderid>')
        @Transactional()
        async pay(orderId: string): Promise<unknown> {
          return orderId;
        }
      }
      return Wrong;
    }).toThrow(LockConfigurationError);
  });
});

describe('a minified class', () => {
  // As esbuild and terser leave it.
  const source = 'class o{async pay(t,e){return t+e}async*list({id:t}){yield t}};o';
  const Minified = runInThisContext(source) as new () => object;
  const decorate =
    (key: string, name = 'pay') =>
    (): unknown =>
      WithLock(key)(
        Minified.prototype as object,
        name,
        Object.getOwnPropertyDescriptor(Minified.prototype, name) as never,
      );

  it('is refused where a name is not found, with the ways that work', () => {
    expect(decorate('order:<orderId>')).toThrow(
      'has no parameter "orderId" (it has t, e). Compilers and minifiers can rename parameters. Other ways: a position (<0>, <0.id>)',
    );
    expect(decorate('order:<id>', 'list')).toThrow('Parameter 0 is destructured: write <0.id>.');
  });

  it('works with positions', () => {
    expect(decorate('order:<0>:<1>')).not.toThrow();
    expect(decorate('order:<0.id>', 'list')).not.toThrow();
  });
});
