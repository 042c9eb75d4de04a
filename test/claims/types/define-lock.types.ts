/* What `defineLock` accepts and refuses at compile time. Nothing here runs; types.spec.ts holds the compiler to it. */
import { defineLock } from '../../../lib/nest/definitions/define-lock.js';
import type {
  KeyArguments,
  KeyParameters,
} from '../../../lib/nest/definitions/definition.types.js';
import type { Lock } from '../../../lib/lease/lock.js';
import type { LockService } from '../../../lib/nest/lock.service.js';

declare const locks: LockService;
declare const template: string;

const nightly = defineLock('nightly', { ttl: '1m' });
const order = defineLock('order:<orderId>', { ttl: '10s', wait: 'forever' });
const item = defineLock('order:<orderId>:item:<itemId>');
const twice = defineLock('<id>:copy:<id>');
const unknown = defineLock(template);
const exports = defineLock('exports:<tenant>', { limit: 10, places: 2 });
const stock = defineLock('stock:<warehouse>', { mode: 'shared' });

type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

export const parameters: Same<
  KeyParameters<'order:<orderId>:item:<itemId>'>,
  'orderId' | 'itemId'
> = true;
export const none: Same<KeyArguments<'nightly'>, []> = true;
export const name: 'order:<orderId>' = order.name;

export async function accepted(): Promise<void> {
  const nothing: Promise<number> = locks.for(nightly).run(() => 1);
  await nothing;
  await locks.for(nightly).run({ wait: 0 }, () => 1);
  const text: string = await locks
    .for(order)
    .run(42, async (lock: Lock) => String(lock.fencingToken));
  await locks.for(order).run('42', { signal: AbortSignal.timeout(1) }, () => text);
  await locks.for(order).run({ orderId: 42n }, (lock) => lock.assertHeld());
  await locks.for(item).run({ orderId: 1, itemId: 'a' }, () => 1);
  await locks.for(twice).run(1, () => 1);
  await locks.for(unknown).run({ whatever: 1 }, () => 1);
  const lock: Lock = await locks.for(order).acquire(42);
  const perhaps: Lock | null = await locks.for(order).tryAcquire({ orderId: 42 }, { ttl: '1s' });
  const tried = await locks.for(order).tryRun(42, () => 'done');
  if (tried.acquired) tried.value satisfies string;
  const key: string = item.key({ orderId: 1, itemId: 2 });
  await locks.for(nightly).acquire();
  await locks.for(nightly).inspect();
  await locks.for(order).inspect(42);
  [lock, perhaps, key] satisfies unknown[];
  await locks.for(exports).run('a', { places: 3 }, () => 1);
  await locks.for(stock).run({ warehouse: 7 }, (held) => held.extend('1m'));
  (await (await locks.for(exports).acquire('a')).detach()) satisfies string;
}

export class Accepted {
  @order.WithLock()
  async pay(_orderId: string): Promise<void> {}

  @order.WithLock({ onLocked: 'skip', wait: 0 })
  async skip(_orderId: string): Promise<string | undefined> {
    return undefined;
  }

  @exports.WithLock({ places: (jobs: readonly string[]) => jobs.length })
  async export(_jobs: readonly string[], _tenant: string): Promise<void> {}
}

export async function refused(): Promise<void> {
  // @ts-expect-error Expected 2-3 arguments, but got 1
  await locks.for(order).run(() => 1);
  // @ts-expect-error 'id' does not exist in type
  await locks.for(order).run({ id: 42 }, () => 1);
  // @ts-expect-error not assignable to
  await locks.for(item).run(42, () => 1);
  // @ts-expect-error not assignable to
  await locks.for(item).run({ orderId: 42 }, () => 1);
  // @ts-expect-error not assignable
  await locks.for(order).acquire(undefined);
  // @ts-expect-error not assignable
  await locks.for(order).acquire({ orderId: null });
  // @ts-expect-error Expected 1 arguments, but got 0
  order.key();
  // @ts-expect-error Expected 0 arguments, but got 1
  nightly.key(42);
  // @ts-expect-error 'wait' does not exist
  await locks.for(order).tryAcquire(42, { wait: '1s' });
  // @ts-expect-error 'signal' does not exist
  defineLock('a', { signal: AbortSignal.timeout(1) });
  // @ts-expect-error 'tll' does not exist
  defineLock('a', { tll: '10s' });
  // @ts-expect-error not assignable to type
  defineLock('a', { mode: 'write' });
  // @ts-expect-error not assignable to type 'number'
  defineLock('a', { limit: 10, places: () => 2 });
  // @ts-expect-error 'itemID' does not exist in type
  await locks.for(item).acquire({ orderId: 1, itemID: 2 });
  // @ts-expect-error 'itemID' does not exist in type
  item.key({ orderId: 1, itemId: 2, itemID: 3 });
  // @ts-expect-error not assignable to
  await locks.for(order).inspect({ orderId: new Date() });
  await locks.for(stock).run(7, async (held) => {
    // @ts-expect-error Property 'detach' does not exist on type 'Lock<number>'
    await held.detach();
  });
}

export class Refused {
  // @ts-expect-error A locked method must always return a Promise
  @order.WithLock()
  pay(_orderId: string): void {}

  // @ts-expect-error The places function does not fit the method
  @exports.WithLock({ places: (weight: number) => weight })
  async export(_tenant: string): Promise<void> {}

  // @ts-expect-error has no option 'retires'
  @order.WithLock({ ttl: '5s', retires: 3 })
  async misspelt(_orderId: string): Promise<void> {}

  // @ts-expect-error add undefined to the method's result
  @order.WithLock({ onLocked: 'skip' })
  async skip(_orderId: string): Promise<string> {
    return '';
  }
}
