import { holdfast } from './holdfast.js';
import { redisSemaphore } from './redis-semaphore.js';
import { redisxLocks } from './redisx-locks.js';
import { redlock } from './redlock.js';
import { simpleRedisLock } from './simple-redis-lock.js';
import type { SourceLibrary } from './source-library.js';

/** All that are migrated. */
export const LIBRARIES: readonly SourceLibrary[] = [
  redlock,
  redisSemaphore,
  simpleRedisLock,
  redisxLocks,
  holdfast,
];
