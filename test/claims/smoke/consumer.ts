/**
 * An application that exports what it infers from the library, and writes declarations: each type of the library in them needs a name that
 * the application can import.
 */
import { Injectable } from '@nestjs/common';
import {
  defineLock,
  InjectLockService,
  Leader,
  LockModule,
  LockNotAcquiredError,
  lockKey,
  LockService,
  RunOnce,
  WithLock,
} from 'nestjs-holdfast';

export const lockModule = LockModule.forRootAsync({ useFactory: () => ({ store: 'memory' }) });
export const orderLock = defineLock('order:<orderId>', { ttl: '10s' });
export const Exclusive = (name: string) => WithLock(`job:${name}`, { wait: '5s' });
export const EachOrder = WithLock((orderId: string) => `order:${orderId}`, { onLocked: 'skip' });
export const OnceEach = RunOnce('email:<id>', { keepDone: '1d' });
export const Single = () => Leader('poller');
export const orderKey = lockKey`order:${1}`;

@Injectable()
export class Orders {
  constructor(
    readonly locks: LockService,
    @InjectLockService('other') readonly other: LockService,
  ) {}

  acquire(id: string) {
    return this.locks.acquire(orderLock.key({ orderId: id }), { ttl: '5s' });
  }

  tryAcquire(id: string) {
    return this.locks.tryAcquire(`order:${id}`);
  }

  tryRun(id: string) {
    return this.locks.tryRun(`order:${id}`, (lock) => lock.fencingToken);
  }

  runOnce(id: string) {
    return this.locks.runOnce(`email:${id}`, { keepDone: '1d' }, (attempt) => ({ attempt }));
  }

  lead() {
    return this.locks.lead('poller', { onElected: (lead) => lead.signal.throwIfAborted() });
  }

  inspect(id: string) {
    return this.locks.inspect(`order:${id}`);
  }

  health() {
    return this.locks.health();
  }

  used() {
    return this.locks.for(orderLock);
  }

  limiter() {
    return this.locks.limiter('mail', { limit: 3 });
  }

  usage() {
    return this.limiter().usage();
  }

  async handed(id: string) {
    const lock = await this.locks.acquire(`order:${id}`);
    return { lock, handle: await lock.detach() };
  }

  current() {
    return this.locks.current();
  }

  lost(error: LockNotAcquiredError) {
    return { keys: error.keys, facts: error.toJSON() };
  }

  @orderLock.WithLock()
  async pay(orderId: string) {
    return { orderId };
  }
}

export const events = (locks: LockService) => ({
  on: (listener: Parameters<LockService['on']>[1]) => locks.on('lost', listener),
});
