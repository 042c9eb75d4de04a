/**
 * Stands in for the file of that name in `lib/` where HOLDFAST_CLIENT is set (jest.config.js, scripts/compile.mjs): whatever a test says
 * of where Redis is, the library is given a client of that package that says the same.
 */
import type { Runtime } from '../../../lib/time/runtime.js';
import type { CredentialsProvider } from '../../../lib/store/redis/client/client-library.js';
import type { RedisSource } from '../../../lib/store/redis/client/redis-client.js';
import * as asItIs from '../../../lib/store/redis/client/redis-location.js';
import { addressOf } from './address.js';
import { makeClient } from './client-under-test.js';
import { noteUse } from './uses.mjs';

export * from '../../../lib/store/redis/client/redis-location.js';

export function redisSource(
  location: asItIs.RedisLocation,
  runtime: Runtime,
  provide?: CredentialsProvider,
): RedisSource {
  return asItIs.redisSource(clientAt(location), runtime, provide);
}

function clientAt(location: asItIs.RedisLocation): asItIs.RedisLocation {
  const address = addressOf(location);
  const client = address && makeClient?.(address);
  noteUse(client === undefined ? 'given' : 'made');
  return client ?? location;
}
