import type { Random } from '../../faults/random.js';
import type { ModelCommand } from './model.js';

/** Plain commands with arguments that are mostly right, on few keys, so that they meet. */

const KEYS = ['one', 'two', 'three'];
/** Of its own: scripts write numbers to the other keys that are larger than the model counts. */
const COUNTER = 'counter';
const MEMBERS = ['a', 'b', 'c', 'aa', 'é', '€', 'Z', ''];
const SCORES = [
  '1',
  '2',
  '-1',
  '0',
  '0.1',
  '1700000000000001',
  '-inf',
  'inf',
  '3.5e10',
  '1e17',
  'x',
];
const BOUNDS = ['-inf', '+inf', '0', '(0', '1', '(1', '(3.5e10', '2', '(-inf', 'x', '('];
const INDEXES = ['0', '1', '-1', '-2', '5', '-100', '100', 'x', '01'];
const LIVES = [1, 5, 100, 3_000, 60_000, 0, -1, 'x', '1.5'];
const OPTIONS = ['NX', 'XX', 'KEEPTTL', 'nx'];

type Maker = (random: Random, keys: readonly string[]) => ModelCommand;

const several = (random: Random, choices: readonly string[]): readonly string[] =>
  Array.from({ length: random.between(1, 3) }, () => random.pick(choices));

const maybe = (
  random: Random,
  ...options: readonly (string | number)[]
): readonly (string | number)[] => (random.chance(0.4) ? options : []);

const MAKERS: readonly Maker[] = [
  (random, keys) => ['GET', random.pick(keys)],
  (random, keys) => ['MGET', ...several(random, keys)],
  (random, keys) => ['SET', random.pick(keys), random.pick(MEMBERS)],
  (random, keys) => [
    ...(['SET', random.pick(keys), random.pick(SCORES)] as const),
    ...maybe(random, random.pick(['PX', 'EX', 'px']), random.pick(LIVES)),
    ...maybe(random, random.pick(OPTIONS)),
    ...maybe(random, random.pick(OPTIONS)),
  ],
  (random) =>
    random.pick<ModelCommand>([
      ['INCR', COUNTER],
      ['INCR', COUNTER],
      ['SET', COUNTER, random.pick(SCORES)],
      ['ZADD', COUNTER, '1', 'a'],
      ['DEL', COUNTER],
    ]),
  (random, keys) => ['DEL', ...several(random, keys)],
  (random, keys) => ['EXISTS', ...several(random, keys)],
  (random, keys) => [random.pick(['PTTL', 'TTL']), random.pick(keys)],
  (random, keys) => [random.pick(['PEXPIRE', 'EXPIRE']), random.pick(keys), random.pick(LIVES)],
  (random, keys) => ['PERSIST', random.pick(keys)],
  (random, keys) => ['TYPE', random.pick(keys)],
  (random, keys) => ['HGET', random.pick(keys), random.pick(MEMBERS)],
  (random, keys) => ['HMGET', random.pick(keys), ...several(random, MEMBERS)],
  (random, keys) => ['HLEN', random.pick(keys)],
  (random, keys) => [
    ...(['HSET', random.pick(keys)] as const),
    ...several(random, MEMBERS).flatMap((member) => [member, random.pick(SCORES)]),
    ...(random.chance(0.1) ? ['odd'] : []),
  ],
  (random, keys) => ['HDEL', random.pick(keys), ...several(random, MEMBERS)],
  (random, keys) => ['HINCRBY', random.pick(keys), random.pick(MEMBERS), random.pick(INDEXES)],
  (random, keys) => [
    ...(['ZADD', random.pick(keys)] as const),
    ...maybe(random, random.pick(['NX', 'XX', 'nx'])),
    ...several(random, MEMBERS).flatMap((member) => [random.pick(SCORES), member]),
    ...(random.chance(0.05) ? ['odd'] : []),
  ],
  (random, keys) => ['ZREM', random.pick(keys), ...several(random, MEMBERS)],
  (random, keys) => ['ZCARD', random.pick(keys)],
  (random, keys) => ['ZSCORE', random.pick(keys), random.pick(MEMBERS)],
  (random, keys) => ['ZCOUNT', random.pick(keys), random.pick(BOUNDS), random.pick(BOUNDS)],
  (random, keys) => [
    'ZREMRANGEBYSCORE',
    random.pick(keys),
    random.pick(BOUNDS),
    random.pick(BOUNDS),
  ],
  (random, keys) => [
    ...([random.pick(['ZRANGE', 'ZREVRANGE', 'zrange']), random.pick(keys)] as const),
    ...[random.pick(INDEXES), random.pick(INDEXES)],
    ...maybe(random, 'WITHSCORES'),
  ],
  (random, keys) => [
    ...(['ZRANGEBYSCORE', random.pick(keys), random.pick(BOUNDS), random.pick(BOUNDS)] as const),
    ...maybe(random, 'WITHSCORES'),
    ...maybe(random, 'LIMIT', random.pick(INDEXES), random.pick(INDEXES)),
  ],
  () => ['TIME'],
  () => ['PING'],
  (random) => ['PUBSUB', random.pick(['NUMSUB', 'SHARDNUMSUB']), 'channel', 'nobody'],
  (random) => [random.pick(['PUBLISH', 'SPUBLISH']), 'channel', random.pick(MEMBERS)],
  (random, keys) => [
    random.pick(['GET', 'SET', 'ZADD', 'PEXPIRE', 'TIME']),
    random.pick(keys),
    'more',
  ],
  () => ['SELECT', 0],
  (random) => ['EVALSHA', '0'.repeat(40), random.pick([0, 1, -1]), 'no'],
];

const LUA = [
  `return redis.call(KEYS[1], KEYS[2], ARGV[1])`,
  `return redis.pcall(KEYS[1], KEYS[2], ARGV[1], ARGV[2])`,
  `local reply = redis.pcall(KEYS[1], KEYS[2]) return { type(reply), reply }`,
  `return { 1.9, -1.9, true, false, redis.call('GET', 'nothing'), nil, 3 }`,
  `return { tonumber(ARGV[1]), tostring(tonumber(ARGV[1])), tonumber(ARGV[2]) }`,
  `return redis.call('SET', KEYS[2], (tonumber(ARGV[1]) or 0) / 3)`,
  `return redis.status_reply(ARGV[1])`,
  `return redis.error_reply('ERR ' .. ARGV[1])`,
  `redis.call('ZADD', KEYS[2], tonumber(ARGV[1]) or 7, 'member')
return redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')`,
  `local function read() return redis.call('ZCARD', KEYS[2]) end
local ok, reply = pcall(read)
return { ok and 'yes' or 'no', reply }`,
];

const NAMES = ['GET', 'MGET', 'ZCARD', 'HGETALL', 'TYPE', 'PTTL', 'EXISTS', 'ZRANGE', 'SET', 'DEL'];

const byScript: Maker = (random, keys) => [
  ...(['EVAL', random.pick(LUA), 2, random.pick(NAMES), random.pick(keys)] as const),
  ...[random.pick(SCORES), random.pick(MEMBERS)],
];

/** @param others that keys may be taken from, too */
export function randomCommand(random: Random, others: readonly string[]): ModelCommand {
  const keys = random.chance(0.5) && others.length > 0 ? others : KEYS;
  return random.chance(0.1) ? byScript(random, keys) : random.pick(MAKERS)(random, keys);
}
