import { Controller, Injectable, Param, ParseIntPipe, Post } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { LockNotAcquiredError, LockNotBoundError, WithLock } from 'nestjs-holdfast';
import { createTestLocks, LockTestingModule, TestLocks } from 'nestjs-holdfast/testing';

@Controller('orders')
class OrdersController {
  @Post(':id/pay')
  @WithLock('order:<id>')
  async pay(@Param('id', ParseIntPipe) id: number): Promise<string> {
    return Promise.resolve(`paid ${String(id)}`);
  }
}

@Injectable()
class OrdersService {
  @WithLock('order:<id>')
  async pay(id: number): Promise<string> {
    return Promise.resolve(`paid ${String(id)}`);
  }
}

const IN_A_TEST = 'in a test, import LockTestingModule.forRoot() from nestjs-holdfast/testing';

describe('a unit test of a handler', () => {
  it('calls the handler as a plain method, under its lock', async () => {
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot()],
      controllers: [OrdersController],
    }).compile();
    await module.init();
    const [controller, testLocks] = [module.get(OrdersController), module.get(TestLocks)];
    expect(await controller.pay(1)).toBe('paid 1');
    expect(testLocks.acquired).toEqual(['order:1']);
    await testLocks.hold('order:2');
    await expect(controller.pay(2)).rejects.toThrow(LockNotAcquiredError);
    await module.close();
  });

  it.each([
    ['a controller', { controllers: [OrdersController] }],
    ['a service', { providers: [OrdersService] }],
  ])('that nest generate made for %s names LockTestingModule', async (_what, metadata) => {
    const compiling = Test.createTestingModule(metadata).compile();
    await expect(compiling).rejects.toThrow(IN_A_TEST);
  });

  it.each([OrdersController, OrdersService])('with useMocker names it, too', async (type) => {
    const module = await Test.createTestingModule({ controllers: [type] })
      .useMocker(() => ({}))
      .compile();
    const error: unknown = await module
      .get(type)
      .pay(1)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockNotBoundError);
    expect((error as LockNotBoundError).detail).toContain('LockTestingModule.forRoot()');
  });

  it.each([OrdersController, OrdersService])(
    'with useMocker for everything else takes the lock of its own key',
    async (type) => {
      const module = await Test.createTestingModule({
        imports: [LockTestingModule.forRoot()],
        controllers: [type],
      })
        .useMocker(() => ({}))
        .compile();
      await module.init();
      await module.get(type).pay(1);
      expect(module.get(TestLocks).acquired).toEqual(['order:1']);
      await module.close();
    },
  );

  it('over HTTP with useMocker for everything else does, too', async () => {
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot()],
      controllers: [OrdersController],
    })
      .useMocker(() => ({}))
      .compile();
    const app = await module.createNestApplication({ logger: false }).init();
    await request(app.getHttpServer()).post('/orders/1/pay').expect(201);
    expect(app.get(TestLocks).acquired).toEqual(['order:1']);
    await app.close();
  });

  it.each([OrdersController, OrdersService])('with new names createTestLocks()', async (type) => {
    const made = new type();
    const error: unknown = await made.pay(1).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockNotBoundError);
    expect((error as LockNotBoundError).detail).toContain(
      'In a test: createTestLocks().locks.bind(object).',
    );
    const { locks } = createTestLocks();
    expect(await locks.bind(made).pay(1)).toBe('paid 1');
    await locks.shutdown(0);
  });
});
