/* What the kinds of locks accept and refuse at compile time. Nothing here runs; types.spec.ts holds the compiler to it. */
import type { DetachableLock, Limiter, Lock, LockEvents, LockService } from '../../../lib/index.js';
import type { HoldMode } from '../../../lib/store/owner-token.js';

declare const locks: LockService;

type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

export async function modes(): Promise<void> {
  const lock: DetachableLock = await locks.acquire('stock', { mode: 'shared' });
  await locks.run('stock', { mode: 'shared', wait: Infinity }, () => 1);
  const mode: HoldMode = lock.mode;
  mode satisfies string;

  // @ts-expect-error not assignable to type
  await locks.acquire('stock', { mode: 'upgradeable' });
  // @ts-expect-error Cannot assign to 'mode' because it is a read-only property
  lock.mode = 'shared';
}

export function modeEvents(): void {
  const stop: () => void = locks.on('acquired', ({ mode, keys }) => {
    return [mode satisfies HoldMode, keys satisfies readonly string[]];
  });
  locks.on('detached', ({ heldMs, ttlMs }) => [heldMs satisfies number, ttlMs satisfies number]);
  locks.on('attached', (event: LockEvents['attached']) => event.fencingToken satisfies number);
  locks.on('limitMismatch', ({ limit, otherLimit }) => limit < otherLimit);
  locks.on('unavailable', ({ operation }) => operation === 'detach' || operation === 'attach');
  stop();

  // @ts-expect-error Argument of type '"upgraded"' is not assignable to parameter of type 'keyof LockEvents<number>'
  locks.on('upgraded', () => undefined);
  // @ts-expect-error Property 'ttlMs' does not exist
  locks.on('attached', ({ ttlMs }) => ttlMs);
  locks.on('unavailable', ({ operation }) => {
    // @ts-expect-error This comparison appears to be unintentional
    return operation === 'renew';
  });
}

export async function replacing(): Promise<void> {
  await locks.run('search:7', { onLocked: 'replace', replaceWait: '5s' }, () => 1);
  await locks.acquire('search:7', { onLocked: 'throw' });

  // @ts-expect-error not assignable to type
  await locks.run('search:7', { onLocked: 'skip' }, () => 1);
  // @ts-expect-error 'onLocked' does not exist
  await locks.tryAcquire('search:7', { onLocked: 'replace' });
  // @ts-expect-error 'replaceWait' does not exist
  await locks.tryRun('search:7', { replaceWait: '5s' }, () => 1);
  // @ts-expect-error 'onLocked' does not exist
  await locks.limiter('exports', { limit: 10 }).run({ onLocked: 'replace' }, () => 1);
}

export async function places(): Promise<void> {
  await using lock = await locks.acquire('exports', { limit: 10, places: 3 });
  await locks.tryRun('exports', { limit: 10, places: 3 }, () => lock);
  const limiter: Limiter = locks.limiter('exports', { limit: 10 });
  const usage = await limiter.usage();
  usage satisfies Record<'limit' | 'inUse' | 'free' | 'waiting', number>;
  const text: string = await limiter.run({ places: 3, wait: 'forever' }, async () => 'done');
  const perhaps: DetachableLock | null = await limiter.tryAcquire({ places: 2 });
  await limiter.setLimit(5);
  await limiter.setLimit(null);
  [text, perhaps] satisfies unknown[];

  // @ts-expect-error not assignable to type 'number'
  await locks.acquire('exports', { limit: 10, places: '3' });
  // @ts-expect-error not assignable to type 'number'
  await locks.run('exports', { limit: 10, places: () => 3 }, () => 1);
  // @ts-expect-error Property 'limit' is missing
  locks.limiter('exports', {});
  // @ts-expect-error 'places' does not exist in type 'LimiterOptions'
  locks.limiter('exports', { limit: 10, places: 3 });
  // @ts-expect-error 'limit' does not exist
  await limiter.acquire({ limit: 3 });
  // @ts-expect-error 'mode' does not exist
  await limiter.run({ mode: 'shared' }, () => 1);
  // @ts-expect-error 'wait' does not exist
  await limiter.tryAcquire({ wait: '1s' });
  // @ts-expect-error Argument of type 'undefined' is not assignable
  await limiter.setLimit(undefined);
  // @ts-expect-error Cannot assign to 'inUse' because it is a read-only property
  usage.inUse = 0;
}

export async function detached(): Promise<void> {
  const lock = await locks.acquire('report');
  const text: string = await lock.detach();
  await lock.detach({ ttl: '10m' });
  const attached: DetachableLock = await locks.attach(text);
  await using again = await locks.attach(await attached.detach(), {
    ttl: '10s',
    autoExtend: false,
    maxHold: 60_000,
  });
  const perhaps = await locks.tryAcquire('report');
  await perhaps?.detach();
  again.keys satisfies readonly string[];

  await locks.run('report', async (section) => {
    // @ts-expect-error Property 'detach' does not exist on type 'Lock<number>'
    await section.detach();
  });
  // @ts-expect-error is possibly 'null'
  await perhaps.detach();
  // @ts-expect-error Type '"10m"' has no properties in common with type 'DetachOptions'
  await lock.detach('10m');
  // @ts-expect-error Type '600000' has no properties in common with type 'AttachOptions'
  await locks.attach(text, 600_000);
  // @ts-expect-error 'maxHold' does not exist in type 'DetachOptions'
  await lock.detach({ maxHold: '1s' });
  // @ts-expect-error 'wait' does not exist in type 'AttachOptions'
  await locks.attach(text, { wait: '1s' });
  // @ts-expect-error 'mode' does not exist in type 'AttachOptions'
  await locks.attach(text, { mode: 'shared' });
  // @ts-expect-error not assignable to parameter of type 'string'
  await locks.attach(lock);
  // @ts-expect-error Expected 1-2 arguments, but got 0
  await locks.attach();
}

export async function guarded(lock: Lock): Promise<void> {
  const replies: readonly unknown[] = await lock.guarded([
    ['SET', 'total:42', 17],
    ['get', 'total:42'],
    ['multi'],
  ]);
  const [first] = replies;
  first satisfies unknown;

  // @ts-expect-error not assignable to type
  await lock.guarded(['PING']);
  // @ts-expect-error not assignable to type
  await lock.guarded([['SET', 'total:42', true]]);
  // @ts-expect-error Source has 0 element(s) but target requires 1
  await lock.guarded([[]]);
  // @ts-expect-error not assignable to type 'string'
  await lock.guarded([[17, 'total:42']]);
  // @ts-expect-error is of type 'unknown'
  first.length satisfies number;
}

export async function held(lock: Lock): Promise<void> {
  lock.depth satisfies number;
  const nothing: Same<ReturnType<Lock['stopRenewal']>, void> = true;
  lock.stopRenewal();
  await lock.extend();
  await lock.extend('5m');
  await lock.extend(5_000);
  const released: boolean = await lock.release();
  [nothing, released] satisfies unknown[];

  // @ts-expect-error not assignable to parameter of type
  await lock.extend('soon');
  // @ts-expect-error not assignable to parameter of type
  await lock.extend({ ttl: '5m' });
  // @ts-expect-error has no properties in common with type 'AcquireOptions'
  await locks.acquire('report', '5m');
  // @ts-expect-error Expected 0 arguments, but got 1
  lock.stopRenewal('1m');
  // @ts-expect-error Cannot assign to 'depth' because it is a read-only property
  lock.depth = 2;
}
