import { Body, Controller, Get, Headers, Param, ParseIntPipe, Post, Query } from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { afterEach, describe, expect, it } from '@jest/globals';
import { WithLock } from 'nestjs-holdfast';
import { Gate } from './gate.js';
import { ADAPTERS, closeHttpApps, CONFLICT, startHttpApp } from './http-app.js';

let gate: Gate;

@Controller()
class Keys {
  @Post('piped/:id')
  @WithLock('order:<id>')
  async piped(@Param('id', ParseIntPipe) id: number): Promise<number> {
    await gate.pass();
    return id;
  }

  @Post('raw/:id')
  @WithLock('order:<request.params.id>')
  async raw(@Param('id') id: string): Promise<string> {
    await gate.pass();
    return id;
  }

  @Post('body')
  @WithLock(['order:<request.body.order.id>', 'list:<request.body.lists.0>'])
  async body(): Promise<void> {
    await gate.pass();
  }

  @Post('dto')
  @WithLock('order:<order.id>')
  async dto(@Body('order') order: { id: string }): Promise<string> {
    await gate.pass();
    return order.id;
  }

  @Post('named')
  @WithLock(['order:<0.id>', 'raw:<request.body.id>'])
  async named(@Body('inner') body: { id: string }): Promise<string> {
    await gate.pass();
    return body.id;
  }

  @Get('sources')
  @WithLock('order:<request.query.id>:<request.headers.X-Shop>')
  async sources(@Query('id') id: string, @Headers('x-shop') shop: string): Promise<string> {
    await gate.pass();
    return id + shop;
  }

  readonly shop = 'north';

  @Post('this/:id')
  @WithLock(function (this: Keys, id: number) {
    return `${this.shop}:${id}`;
  })
  async byThis(@Param('id', ParseIntPipe) id: number): Promise<number> {
    await gate.pass();
    return id;
  }

  @Post('function/:id')
  @WithLock((id: number) => `order:${id}`)
  async byFunction(@Param('id', ParseIntPipe) id: number): Promise<number> {
    await gate.pass();
    return id;
  }

  @Get('keyless/:id')
  @WithLock((id: string) => {
    if (id === 'broken') throw new TypeError('mine');
    return '';
  })
  async keyless(@Param('id') id: string): Promise<string> {
    await gate.pass();
    return id;
  }

  @Get('inner-keyless')
  async innerKeyless(): Promise<unknown> {
    return this.keyless('1');
  }

  @Get('inner')
  async inner(): Promise<unknown> {
    return this.raw('1');
  }
}

afterEach(closeHttpApps);

describe.each(ADAPTERS)('the key of a handler, on %s', (adapter) => {
  const start = () => {
    gate = new Gate();
    return startHttpApp({ controllers: [Keys] }, { adapter });
  };

  it('is made of the arguments as the pipes made them', async () => {
    const { post } = await start();
    const first = post('/piped/42');
    await gate.reached;
    expect((await post('/piped/042')).status).toBe(409);
    gate.open();
    expect((await post('/piped/43')).body).toBe(43);
    expect((await first).body).toBe(42);
    expect((await post('/piped/x')).status).toBe(400);
  });

  it('is made of the raw request where it names a part of the request', async () => {
    const { post, locks } = await start();
    const first = post('/raw/42');
    await gate.reached;
    const second = post('/raw/042');
    expect((await post('/raw/42')).body).toEqual(CONFLICT);
    expect((await locks.inspect('order:042')).held).toBe(true);
    gate.open();
    expect([(await first).body, (await second).body]).toEqual([42, '042']);
  });

  it('reads bodies, raw and as parameters', async () => {
    const { post, locks } = await start();
    const body = { order: { id: 7 }, lists: ['a', 'b'] };
    const first = post('/body', body);
    await gate.reached;
    expect((await locks.inspect('order:7')).held).toBe(true);
    expect((await locks.inspect('list:a')).held).toBe(true);
    expect((await post('/dto', { order: { id: '7' } })).status).toBe(409);
    gate.open();
    expect((await first).status).toBe(201);
    expect((await post('/dto', { order: { id: '7' } })).body).toBe(7);
  });

  it('tells a parameter from a part of the request of that name', async () => {
    const { post, locks } = await start();
    const first = post('/named', { id: 'outer', inner: { id: 'inner' } });
    await gate.reached;
    expect((await locks.inspect('order:inner')).held).toBe(true);
    expect((await locks.inspect('order:outer')).held).toBe(false);
    expect((await locks.inspect('raw:outer')).held).toBe(true);
    gate.open();
    expect((await first).status).toBe(201);
  });

  it('reads the query and headers in any case', async () => {
    const { get, locks } = await start();
    const first = get('/sources?id=4', { headers: { 'x-shop': 'north' } });
    await gate.reached;
    expect((await locks.inspect('order:4:north')).held).toBe(true);
    gate.open();
    expect((await first).body).toBe('4north');
  });

  it('may be a function of the arguments as the pipes made them', async () => {
    const { post } = await start();
    const first = post('/function/42');
    await gate.reached;
    expect((await post('/function/042')).status).toBe(409);
    gate.open();
    expect((await first).status).toBe(201);
  });

  it('may be a function of the object as well', async () => {
    const { post, locks } = await start();
    const first = post('/this/42');
    await gate.reached;
    expect((await locks.inspect('north:42')).held).toBe(true);
    gate.open();
    expect((await first).status).toBe(201);
  });

  it('of a function is checked, and is the fault of the request where there is one', async () => {
    const { get, warnings } = await start();
    const ofRequest = await get('/keyless/1');
    expect(ofRequest.status).toBe(400);
    expect(ofRequest.body.code).toBe('LOCK_KEY_INVALID');
    const ofCode = await get('/inner-keyless');
    expect(ofCode.status).toBe(500);
    expect(ofCode.body.code).toBe('LOCK_KEY_INVALID');
    expect((await get('/keyless/broken')).body).toEqual({
      statusCode: 500,
      message: 'Internal server error',
    });
    expect(gate.visits).toBe(0);
    expect(warnings.join()).toContain('@WithLock on Keys.keyless: ');
  });

  it('is an error where it needs the request and there is none', async () => {
    const { get, warnings } = await start();
    const { status, body } = await get('/inner');
    expect(status).toBe(500);
    expect(body.code).toBe('LOCK_KEY_INVALID');
    expect(gate.visits).toBe(0);
    expect(warnings.join()).toContain(
      '<request.params.id> is read from the request, but the method was called without one.',
    );
  });

  it('is the fault of the request where a value is missing', async () => {
    const { post, get } = await start();
    const expected = {
      statusCode: 400,
      message: 'A value that identifies what to lock is missing or not valid.',
      error: 'Bad Request',
      code: 'LOCK_KEY_INVALID',
    };
    expect((await post('/body', { order: {}, lists: ['a'] })).body).toEqual(expected);
    expect((await post('/dto', {})).body).toEqual(expected);
    expect((await get('/sources?id=4')).body).toEqual(expected);
    expect((await get('/sources?id=4&id=5', { headers: { 'x-shop': 'n' } })).status).toBe(400);
    expect(gate.visits).toBe(0);
  });

  it('may not leave open whether a parameter is meant or the request', () => {
    const define = (key: string): void => {
      class Orders {
        @Post()
        @WithLock(key)
        async pay(@Body('inner') body: { id: string }, @Query() request: object): Promise<void> {
          await Promise.resolve([body, request]);
        }
      }
      expect(Orders).toBeDefined();
    };
    expect(() => {
      define('order:<body.id>');
    }).toThrow(
      '@WithLock on Orders.pay: the key "order:<body.id>" has <body.id>, which is the parameter "body" of pay() and a part of the request. ' +
        'Where a minifier renames the parameter, it would be the request. Write <0.id> for the parameter, after its pipes, or ' +
        '<request.body.id> for the request as it came.',
    );
    expect(() => {
      define('order:<request.query.id>');
    }).toThrow('Write <1.query.id> for the parameter, after its pipes, or rename the parameter.');
    expect(() => {
      define('order:<request.user.id>');
    }).toThrow(
      'Write <1.user.id> for the parameter, after its pipes, or <user.id> for the request as it came.',
    );
    expect(() => {
      define('order:<0.id>:<request.id>:<query.id>');
    }).not.toThrow();
    // What is no handler has no request.
    expect(() => {
      class Payments {
        @WithLock('user:<request.user.id>:<user.id>')
        async pay(request: { user: { id: string } }, user: { id: string }): Promise<void> {
          await Promise.resolve([request, user]);
        }
      }
      expect(Payments).toBeDefined();
    }).not.toThrow();
  });

  it('may not do so either where parameters need no decorators, which is seen at the start', async () => {
    @Controller()
    class Procedures {
      @MessagePattern('pay')
      @WithLock('order:<body.id>')
      async pay(body: { id: string }): Promise<string> {
        return body.id;
      }
    }
    @WebSocketGateway()
    class Gateway {
      @WithLock('order:<user.id>')
      @SubscribeMessage('pay')
      async pay(user: object): Promise<object> {
        return user;
      }
    }
    const problem =
      /has <\w+\.id>, which is the parameter "\w+" of pay\(\) and a part of the request/;
    await expect(startHttpApp({ controllers: [Procedures] })).rejects.toThrow(problem);
    await expect(startHttpApp({ providers: [Gateway] })).rejects.toThrow(problem);
  });
});
