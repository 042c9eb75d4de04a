import { randomUUID } from 'node:crypto';
import { connect } from '../support/clients.mjs';

const RELEASE =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

/** The least that grants a fencing token: larger than the last one, and than the time in µs. */
const ACQUIRE_FENCED = `
local time = redis.call('TIME')
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local fence = math.max((tonumber(redis.call('GET', KEYS[2])) or 0) + 1, time[1] * 1000000 + time[2])
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', ARGV[2])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence`;

/**
 * The two commands that no lock can do without, and nothing else: no waiting, no renewal, and a fencing token only where that is asked for.
 *
 * @type {import('./index.mjs').Open}
 */
export async function open(urls, { fencing }) {
  const { clients, close } = await connect(urls);
  const [redis] = clients;
  redis.defineCommand('compareAndDelete', { lua: RELEASE, numberOfKeys: 1 });
  redis.defineCommand('acquireFenced', { lua: ACQUIRE_FENCED, numberOfKeys: 2 });
  const take = fencing
    ? (key, token, ttl) => redis.acquireFenced(key, `{${key}}:fence`, token, ttl)
    : (key, token, ttl) => redis.set(key, token, 'PX', ttl, 'NX');
  return {
    async acquire(key, { ttl }) {
      const token = randomUUID();
      if ((await take(key, token, ttl)) === null) throw new Error(`${key} is held`);
      return () => redis.compareAndDelete(key, token);
    },
    close,
  };
}
