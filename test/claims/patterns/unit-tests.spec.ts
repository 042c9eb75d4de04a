import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { expect, it } from '@jest/globals';
import { WithLock } from 'nestjs-holdfast';
import { LockTestingModule, TestLocks } from 'nestjs-holdfast/testing';
import { recipesOf } from './recipe-pages.js';

abstract class Provider {
  abstract charge(orderId: string): Promise<void>;
}

@Injectable()
class OrdersService {
  constructor(readonly provider: Provider) {}

  @WithLock('order:<orderId>')
  async pay(orderId: string): Promise<string> {
    return Promise.resolve(`paid ${orderId}`);
  }
}

it('a unit test mocks everything but the locks', async () => {
  // recipe
  const module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()], // instead of LockModule
    providers: [OrdersService],
  })
    .useMocker(() => ({})) // for the other providers
    .compile();
  await module.init();
  const orders = module.get(OrdersService);
  const testLocks = module.get(TestLocks);

  await testLocks.hold('order:42'); // another caller holds it
  await expect(orders.pay('42')).rejects.toThrow('held by another caller');
  await testLocks.free('order:42');

  await orders.pay('42');
  expect(testLocks.acquired).toEqual(['order:42']); // the keys that were locked
  expect(testLocks.held).toEqual([]); // everything was released
  await module.close();
  // end
  expect(orders.provider).toEqual({});
  expect(recipesOf('unit-tests.spec.ts')).toEqual({ shown: 1, missing: [] });
});
