import { LockConfigurationError } from '../errors.js';
import type { ReplicaOptions } from '../store/redis/node/acknowledged-writes.js';
import type { RestartGuard } from '../store/redis/node/probe.js';
import { isRedisClient, type RedisLocation } from '../store/redis/client/redis-source.js';
import type { LockStore } from '../store/lock-store.js';
import { RESERVED_TOKENS } from '../store/owner-token.js';
import { describe } from './describe.js';
import { toMs } from './duration.js';
import type {
  HandoffOptions,
  LockErrorOptions,
  LockModuleOptions,
  ReplicaGuardOptions,
  RestartGuardOptions,
} from './lock-module-options.js';
import { hintFor, type Elsewhere } from './unknown-option.js';

/** The bounds of a tenure. */
export interface Handoff {
  /** While others wait. */
  readonly turns: number;
  readonly tenureMs: number;
}

/** Every option, checked, in the units of the library. */
export interface ResolvedOptions {
  readonly location:
    | { readonly kind: 'redis'; readonly redis: readonly RedisLocation[] }
    | { readonly kind: 'memory' }
    | { readonly kind: 'store'; readonly store: LockStore };
  readonly keyPrefix: string;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly autoExtend: boolean;
  readonly clockDrift: number;
  readonly nodeTimeoutMs: number;
  readonly fenceKeepMs: number;
  readonly restartGuard: RestartGuard | undefined;
  readonly replicas: ReplicaOptions | undefined;
  readonly handoff: Handoff;
  /** How many fencing tokens are reserved with a lease. */
  readonly turns: number;
  readonly shutdownTimeoutMs: number;
  readonly errors: LockErrorOptions;
}

/** Below this, a network's own delays use up most of a lease. */
export const SHORTEST_TTL_MS = 50;

/** Node keeps the delays of its timers in a signed 32-bit integer; a longer one fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const NAMES = {
  redis: true,
  store: true,
  keyPrefix: true,
  ttl: true,
  wait: true,
  autoExtend: true,
  clockDrift: true,
  nodeTimeout: true,
  maxClockStep: true,
  restartGuard: true,
  replicas: true,
  handoff: true,
  shutdownTimeout: true,
  errors: true,
} satisfies Record<keyof LockModuleOptions, true>;

/** @throws LockConfigurationError that names the option, what was given, and what to do. */
export function resolveOptions(options: LockModuleOptions): ResolvedOptions {
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw new LockConfigurationError(
      `LockModule needs an options object, received ${describe(options)}. Write LockModule.forRoot({ redis: 'redis://localhost:6379' }).`,
    );
  }
  refuseUnknown(options, NAMES, 'LockModule');
  const location = locationOf(options);
  const handoff = handoffOf(options.handoff ?? {});
  const restartGuard = restartGuardOf(options.restartGuard, location);
  const nodeTimeoutMs = Math.min(
    toMs(options.nodeTimeout ?? 1_000, 'nodeTimeout', 1),
    LONGEST_TIMER_MS,
  );
  return {
    location,
    keyPrefix: keyPrefixOf(options.keyPrefix ?? 'lock:'),
    ttlMs: ttlToMs(options.ttl ?? 30_000, restartGuard),
    waitMs: toMs(options.wait ?? 10_000, 'wait'),
    autoExtend: booleanOf(options.autoExtend ?? true, 'autoExtend'),
    clockDrift: clockDriftOf(options.clockDrift ?? 0.01),
    nodeTimeoutMs,
    fenceKeepMs: Math.ceil(toMs(options.maxClockStep ?? 600_000, 'maxClockStep')),
    restartGuard,
    replicas: replicasOf(options.replicas, location, nodeTimeoutMs),
    handoff,
    turns: handoff.turns > 1 ? RESERVED_TOKENS : 1,
    shutdownTimeoutMs: Math.min(
      toMs(options.shutdownTimeout ?? 10_000, 'shutdownTimeout'),
      LONGEST_TIMER_MS,
    ),
    errors: errorsOf(options.errors ?? {}),
  };
}

/** Redis counts whole milliseconds. */
export function ttlToMs(value: unknown, guard?: RestartGuard): number {
  const ttlMs = Math.ceil(toMs(value, 'ttl', SHORTEST_TTL_MS));
  if (guard === undefined || ttlMs <= guard.maxTtlMs) return ttlMs;
  throw new LockConfigurationError(
    `A TTL of ${String(ttlMs)} ms is longer than "restartGuard.maxTtl", ${String(guard.maxTtlMs)} ms: a restarted server would forget it ` +
      'too early. Give a shorter "ttl" (it is renewed for as long as the lock is held), or a longer "maxTtl".',
  );
}

export function booleanOf(value: unknown, option: string): boolean {
  if (typeof value === 'boolean') return value;
  throw wrong(option, value, 'true or false');
}

/** @throws LockConfigurationError */
export function nameOf(value: unknown): string | symbol | undefined {
  if (value === undefined || typeof value === 'symbol') return value;
  if (typeof value === 'string' && value !== '') return value;
  throw wrong('name', value, 'a symbol, or a text that is not empty');
}

function refuseUnknown(options: object, names: object, what: string): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (unknown === undefined) return;
  const list = Object.keys(names);
  throw new LockConfigurationError(
    `${what} has no option "${unknown}".${hintFor(unknown, list, ELSEWHERE)} Its options are ${list.join(', ')}.`,
  );
}

const BESIDE_THE_FACTORY =
  'It goes beside "useFactory" in forRootAsync, not into what that returns.';
const INTO_REDIS = "It goes into the options of Redis: redis: { host: 'localhost', … }.";

/** What is put into the options by mistake, and where it belongs. */
const ELSEWHERE: Elsewhere = new Map([
  ['name', BESIDE_THE_FACTORY],
  ['isGlobal', BESIDE_THE_FACTORY],
  ['url', "Give the URL itself: redis: 'redis://localhost:6379'."],
  ['host', INTO_REDIS],
  ['port', INTO_REDIS],
  ['password', INTO_REDIS],
]);

function locationOf(options: LockModuleOptions): ResolvedOptions['location'] {
  const { redis, store } = options;
  if (redis !== undefined && store !== undefined) {
    throw new LockConfigurationError(
      'LockModule was given both "redis" and "store". Give one of them.',
    );
  }
  if (redis !== undefined) return { kind: 'redis', redis: redisOf(redis) };
  if (store === 'memory') return { kind: 'memory' };
  if (store !== undefined) return { kind: 'store', store: storeOf(store) };
  const problem = Object.hasOwn(options, 'redis')
    ? 'Option "redis" is undefined: is the environment variable set that it is read from? There is no silent default.'
    : 'LockModule was given neither "redis" nor "store", and there is no silent default.';
  throw new LockConfigurationError(
    `${problem} Give redis: 'redis://localhost:6379', or store: 'memory' for development and tests.`,
  );
}

function redisOf(redis: unknown): readonly RedisLocation[] {
  if (!Array.isArray(redis)) return [nodeOf(redis, 'redis')];
  if (redis.length === 0) {
    throw new LockConfigurationError(
      `Option "redis" is an empty list. Give one Redis, or an odd number of independent masters: redis: ['redis://a', 'redis://b', 'redis://c'].`,
    );
  }
  return redis.map((node, index) => nodeOf(node, `redis[${String(index)}]`));
}

function nodeOf(redis: unknown, option: string): RedisLocation {
  if (typeof redis === 'string' && /,\s*rediss?:\/\//.test(redis)) {
    throw new LockConfigurationError(
      `Option "${option}" holds several URLs in one text. Give a list of them: text.split(',').`,
    );
  }
  if (typeof redis === 'string') {
    if (/^rediss?:\/\/./.test(redis)) return redis;
    throw wrong(option, redis, `a URL such as 'redis://localhost:6379'`);
  }
  if (typeof redis === 'object' && redis !== null && !Array.isArray(redis)) {
    if (isRedisClient(redis)) return redis;
    const { url, duplicate } = redis as { url?: unknown; duplicate?: unknown };
    if (url !== undefined) {
      throw new LockConfigurationError(
        `Option "${option}" has a property "url", which ioredis does not know. Give the URL itself: redis: '…'.`,
      );
    }
    if (typeof duplicate === 'function') {
      throw new LockConfigurationError(
        `Option "${option}" is a client of another library than ioredis. Give its URL, or ioredis options.`,
      );
    }
    return plainOptionsOf(redis, option);
  }
  throw wrong(option, redis, 'a URL, ioredis options, or an ioredis Redis or Cluster');
}

const ADDRESSES = ['host', 'port', 'path', 'sentinels'];

/** Whatever ioredis does not find an address in means localhost to it. */
function plainOptionsOf(redis: object, option: string): RedisLocation {
  const isPlain = [Object.prototype, null].includes(Object.getPrototypeOf(redis) as object | null);
  if (!isPlain || !ADDRESSES.some((name) => Object.hasOwn(redis, name))) {
    throw new LockConfigurationError(
      `Option "${option}" must say where Redis is: a URL as text, an ioredis client, or ioredis options with one of ${ADDRESSES.join(', ')}.`,
    );
  }
  const { host, path } = redis as Readonly<Record<string, unknown>>;
  if ([host, path].some((value) => typeof value === 'string' && /:\/\/|@/.test(value))) {
    throw new LockConfigurationError(
      `Option "${option}" has a URL, or a part of one, as its host or path. Give the URL itself: redis: 'redis://…'.`,
    );
  }
  return redis;
}

const GUARD_NAMES = { maxTtl: true, bootstrap: true } satisfies Record<
  keyof RestartGuardOptions,
  true
>;

function restartGuardOf(
  value: RestartGuardOptions | undefined,
  location: ResolvedOptions['location'],
): RestartGuard | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'object' || (value as unknown) === null)
    throw wrong('restartGuard', value, `an object such as { maxTtl: '1m' }`);
  refuseUnknown(value, GUARD_NAMES, 'Option "restartGuard"');
  if (location.kind !== 'redis') throw onlyRedis('restartGuard');
  if (location.redis.some((node) => isRedisClient(node) && node.isCluster)) {
    throw new LockConfigurationError(
      'Option "restartGuard" does not work on a Redis Cluster: a key that tells a restart would be needed in every slot. Leave it out, ' +
        'and give "replicas" there.',
    );
  }
  return {
    maxTtlMs: Math.ceil(toMs(value.maxTtl, 'restartGuard.maxTtl', SHORTEST_TTL_MS)),
    bootstrap: booleanOf(value.bootstrap ?? false, 'restartGuard.bootstrap'),
  };
}

const REPLICA_NAMES = { ack: true, timeout: true } satisfies Record<
  keyof ReplicaGuardOptions,
  true
>;

function replicasOf(
  value: ReplicaGuardOptions | undefined,
  location: ResolvedOptions['location'],
  nodeTimeoutMs: number,
): ReplicaOptions | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'object' || (value as unknown) === null)
    throw wrong('replicas', value, `an object such as { ack: 1, timeout: '50ms' }`);
  refuseUnknown(value, REPLICA_NAMES, 'Option "replicas"');
  if (location.kind !== 'redis') throw onlyRedis('replicas');
  if (location.redis.length > 1) {
    throw new LockConfigurationError(
      'Option "replicas" is for one Redis. The masters of a quorum are independent of each other and need no replicas: a majority of them ' +
        'keeps the locks.',
    );
  }
  const { ack } = value;
  if (!Number.isInteger(ack) || ack < 1) throw wrong('replicas.ack', ack, 'a whole number from 1');
  const timeoutMs = Math.ceil(toMs(value.timeout ?? 50, 'replicas.timeout', 1));
  if (timeoutMs < nodeTimeoutMs) return { ack, timeoutMs };
  throw new LockConfigurationError(
    `Option "replicas.timeout" (${String(timeoutMs)} ms) must be shorter than "nodeTimeout" (${String(nodeTimeoutMs)} ms), in which it is contained.`,
  );
}

const HANDOFF_NAMES = { turns: true, tenure: true } satisfies Record<keyof HandoffOptions, true>;

function handoffOf(value: false | HandoffOptions): Handoff {
  if (value === false) return { turns: 1, tenureMs: 0 };
  if (typeof value !== 'object' || (value as unknown) === null)
    throw wrong('handoff', value, `false, or an object such as { turns: 16, tenure: '20ms' }`);
  refuseUnknown(value, HANDOFF_NAMES, 'Option "handoff"');
  const { turns = 16, tenure = 20 } = value;
  if (!Number.isInteger(turns) || turns < 1 || turns > RESERVED_TOKENS) {
    throw wrong('handoff.turns', turns, `a whole number from 1 to ${String(RESERVED_TOKENS)}`);
  }
  return { turns, tenureMs: toMs(tenure, 'handoff.tenure') };
}

const onlyRedis = (option: string): LockConfigurationError =>
  new LockConfigurationError(`Option "${option}" is for locks in Redis: give "redis".`);

const STORE_METHODS = [
  'acquire',
  'extend',
  'release',
  'inspect',
  'forceRelease',
  'listen',
  'leave',
  'close',
];

function storeOf(value: unknown): LockStore {
  const missing = STORE_METHODS.filter(
    (name) => typeof (value as Record<string, unknown> | null)?.[name] !== 'function',
  );
  if (missing.length === 0) return value as LockStore;
  const lacks = missing.length < STORE_METHODS.length ? ` (it has no ${missing.join(', ')})` : '';
  throw wrong('store', value, `'memory' or an object with the methods of LockStore${lacks}`);
}

function keyPrefixOf(value: unknown): string {
  // eslint-disable-next-line no-control-regex -- they are what is looked for
  const bad = typeof value !== 'string' || /[\u0000-\u001f\u007f]/.test(value);
  const tag = typeof value === 'string' ? value.replace(/\{[^{}]+\}/, '') : '';
  if (!bad && !/[{}]/.test(tag)) return value;
  throw wrong(
    'keyPrefix',
    value,
    `a text without control characters, with at most one Cluster hash tag such as '{app}:'`,
  );
}

function clockDriftOf(value: unknown): number {
  if (typeof value === 'number' && value >= 0 && value <= 0.5) return value;
  throw wrong('clockDrift', value, 'a fraction from 0 to 0.5, such as 0.01');
}

const ERROR_NAMES = { exposeKeys: true, body: true } satisfies Record<keyof LockErrorOptions, true>;

function errorsOf(value: LockErrorOptions): LockErrorOptions {
  if (typeof value !== 'object' || (value as unknown) === null)
    throw wrong('errors', value, 'an object { exposeKeys?, body? }');
  refuseUnknown(value, ERROR_NAMES, 'Option "errors"');
  booleanOf(value.exposeKeys ?? false, 'errors.exposeKeys');
  if (value.body !== undefined && typeof (value.body as unknown) !== 'function')
    throw wrong('errors.body', value.body, 'a function (error, body) => body');
  return value;
}

function wrong(option: string, value: unknown, expected: string): LockConfigurationError {
  return new LockConfigurationError(
    `Option "${option}" must be ${expected}, received ${describe(value)}.`,
  );
}
