import { INestApplication } from '@nestjs/common';
import { Test, TestingModuleBuilder } from '@nestjs/testing';
import { LockService } from 'nestjs-holdfast';
import { createTestLocks } from 'nestjs-holdfast/testing';
import request from 'supertest';
import { App } from 'supertest/types';
import { AppModule } from './../src/app.module';

describe('Orders (e2e)', () => {
  let app: INestApplication<App>;

  const start = async (
    change: (builder: TestingModuleBuilder) => TestingModuleBuilder,
  ): Promise<void> => {
    const builder = Test.createTestingModule({ imports: [AppModule] });
    app = (await change(builder).compile()).createNestApplication();
    await app.listen(0);
  };
  const post = async (path: string): Promise<request.Response> =>
    request(app.getHttpServer()).post(path);

  afterEach(async () => {
    await app.close();
  });

  it('the second of two payments at once answers 409', async () => {
    await start((builder) => builder);
    const payments = [post('/orders/42/pay'), post('/orders/42/pay')];

    const refused = await Promise.race(payments);
    expect(refused.status).toBe(409);
    expect(refused.body).toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    expect(refused.headers['retry-after']).toMatch(/^\d+$/);

    const statuses = (await Promise.all(payments)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([201, 409]);
  });

  it('a payment answers 409 while the test has its lock', async () => {
    const { locks, testLocks } = createTestLocks();
    await start((builder) =>
      builder.overrideProvider(LockService).useValue(locks),
    );

    await testLocks.hold('order:42');
    expect((await post('/orders/42/pay')).status).toBe(409);

    await testLocks.free('order:42');
    expect((await post('/orders/42/pay')).status).toBe(201);
  });
});
