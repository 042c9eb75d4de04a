import type { Keyspace } from '../keyspace.js';
import { ModelError, NO_INTEGER, WRONG_TYPE, type RawReply } from '../replies.js';
import { grows, reads, writes, type Command } from './command.js';
import { integerOf } from './parse.js';

type Hash = Map<string, string>;

export const HASH_COMMANDS: Readonly<Record<string, Command>> = {
  HGET: reads(3, ({ keyspace }, [, key = '', field = '']) =>
    using(keyspace, key, (hash) => hash?.get(field) ?? null),
  ),
  HMGET: reads(-3, ({ keyspace }, [, key = '', ...fields]) =>
    using(keyspace, key, (hash) => fields.map((field) => hash?.get(field) ?? null)),
  ),
  HGETALL: reads(2, ({ keyspace }, [, key = '']) =>
    using(keyspace, key, (hash) => (hash ? [...hash].flat() : [])),
  ),
  HLEN: reads(2, ({ keyspace }, [, key = '']) => using(keyspace, key, (hash) => hash?.size ?? 0)),
  HSET: grows(-4, ({ keyspace }, [, key = '', ...pairs]) => {
    if (pairs.length % 2 !== 0)
      return new ModelError("ERR wrong number of arguments for 'hset' command");
    return using(keyspace, key, (found) => {
      const hash = found ?? added(keyspace, key);
      const before = hash.size;
      for (let index = 0; index < pairs.length; index += 2)
        hash.set(pairs[index] as string, pairs[index + 1] as string);
      keyspace.changed(key);
      return hash.size - before;
    });
  }),
  HDEL: writes(-3, ({ keyspace }, [, key = '', ...fields]) =>
    using(keyspace, key, (hash) => {
      if (hash === undefined) return 0;
      const deleted = fields.filter((field) => hash.delete(field)).length;
      if (deleted > 0) keyspace.changed(key);
      if (hash.size === 0) keyspace.delete(key);
      return deleted;
    }),
  ),
  HINCRBY: grows(4, ({ keyspace }, [, key = '', field = '', by = '']) => {
    const increment = integerOf(by);
    if (increment === undefined) return NO_INTEGER;
    return using(keyspace, key, (hash) => {
      const old = integerOf(hash?.get(field) ?? '0');
      if (old === undefined) return new ModelError('ERR hash value is not an integer');
      (hash ?? added(keyspace, key)).set(field, String(old + increment));
      keyspace.changed(key);
      return old + increment;
    });
  }),
};

function using(
  keyspace: Keyspace,
  key: string,
  work: (hash: Hash | undefined) => RawReply,
): RawReply {
  const value = keyspace.get(key)?.value;
  return value === undefined || value instanceof Map ? work(value) : WRONG_TYPE;
}

function added(keyspace: Keyspace, key: string): Hash {
  const hash: Hash = new Map();
  keyspace.set(key, hash);
  return hash;
}
