/** What the other packages declare, as far as the fixtures use it: they are not installed here. */
export const PACKAGES = `
declare module 'redlock' {
  export default class Redlock {
    static readonly LockError: new () => Error;
    constructor(clients: unknown[]);
    acquire(resources: string[], ttl: number): Promise<unknown>;
  }
}
declare module 'redis-semaphore' {
  export interface LockOptions {
    lockTimeout?: number;
    acquireTimeout?: number;
    acquireAttemptsLimit?: number;
    retryInterval?: number;
    refreshInterval?: number;
    onLockLost?: (error: Error) => void;
  }
  export class Mutex {
    constructor(client: unknown, key: string, options?: LockOptions);
    readonly isAcquired: boolean;
    acquire(signal?: AbortSignal): Promise<void>;
    tryAcquire(): Promise<boolean>;
    release(): Promise<void>;
  }
  export class MultiSemaphore {
    constructor(client: unknown, key: string, limit: number, permits: number);
    acquire(): Promise<void>;
    release(): Promise<void>;
  }
  export class RedlockMutex extends Mutex {}
  export class Semaphore {
    constructor(client: unknown, key: string, limit: number, options?: LockOptions);
    acquire(): Promise<void>;
    release(): Promise<void>;
  }
  export class TimeoutError extends Error {}
}
declare module 'nestjs-simple-redis-lock' {
  export function RedisLock(
    name: string | ((target: any, ...args: any[]) => string),
    expire?: number,
    retryInterval?: number,
    maxRetryTimes?: number,
  ): MethodDecorator;
  export class RedisLockService {
    lock(name: string, expire?: number, retryInterval?: number, times?: number): Promise<void>;
    lockOnce(name: string, expire: number): Promise<boolean>;
    unlock(name: string): Promise<void>;
  }
  export class RedisLockModule {
    static register(options: { prefix?: string }): import('@nestjs/common').DynamicModule;
  }
}
declare module '@nestjs-redisx/locks' {
  export const LOCK_SERVICE: symbol;
  export interface ILockService {
    isLocked(key: string): Promise<boolean>;
  }
  export function WithLock(options: {
    key: string | ((...args: any[]) => string);
    ttl?: number;
    waitTimeout?: number;
    autoRenew?: boolean;
    retry?: { maxRetries?: number; initialDelay?: number };
    onLockFailed?: 'throw' | 'skip' | ((key: string) => Error);
  }): MethodDecorator;
}
`;
