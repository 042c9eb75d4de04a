import type { Keyspace } from '../keyspace.js';
import {
  invalidExpiry,
  ModelError,
  NO_INTEGER,
  OK,
  Status,
  UnknownCommand,
  type RawReply,
} from '../replies.js';
import { SortedSet } from '../sorted-set.js';
import { reads, writes, type Command } from './command.js';
import { globOf, integerOf } from './parse.js';

/** What works on keys of any type. */
export const KEY_COMMANDS: Readonly<Record<string, Command>> = {
  DEL: writes(-2, ({ keyspace }, argv) => {
    let deleted = 0;
    for (let index = 1; index < argv.length; index += 1) {
      const key = argv[index] as string;
      if (keyspace.get(key) === undefined) continue;
      keyspace.delete(key);
      deleted += 1;
    }
    return deleted;
  }),
  EXISTS: reads(-2, ({ keyspace }, argv) => {
    let found = 0;
    for (let index = 1; index < argv.length; index += 1)
      if (keyspace.get(argv[index] as string) !== undefined) found += 1;
    return found;
  }),
  PTTL: reads(2, ({ keyspace }, argv) => leftMs(keyspace, argv[1] as string)),
  TTL: reads(2, ({ keyspace }, [, key = '']) => {
    const left = leftMs(keyspace, key);
    return left < 0 ? left : Math.floor((left + 500) / 1_000);
  }),
  PEXPIRE: writes(-3, ({ keyspace }, argv) => expire(keyspace, argv, { unitMs: 1 })),
  EXPIRE: writes(-3, ({ keyspace }, argv) => expire(keyspace, argv, { unitMs: 1_000 })),
  PERSIST: writes(2, ({ keyspace }, [, key = '']) => {
    const entry = keyspace.get(key);
    if (entry === undefined || entry.expiresAtMs === Infinity) return 0;
    entry.expiresAtMs = Infinity;
    keyspace.changed(key);
    return 1;
  }),
  TYPE: reads(2, ({ keyspace }, [, key = '']) => {
    const value = keyspace.get(key)?.value;
    if (value === undefined) return new Status('none');
    if (typeof value === 'string') return new Status('string');
    return new Status(value instanceof SortedSet ? 'zset' : 'hash');
  }),
  KEYS: reads(2, ({ keyspace }, [, pattern = '']) => {
    const glob = globOf(pattern);
    return keyspace
      .visible()
      .map(([key]) => key)
      .filter((key) => glob.test(key));
  }),
  /** All at once. */
  SCAN: reads(-2, ({ keyspace }, [, , match, pattern = '*']) => {
    if (match?.toUpperCase() !== 'MATCH') throw new UnknownCommand('SCAN without MATCH');
    const glob = globOf(pattern);
    const names = keyspace.visible().map(([key]) => key);
    return ['0', names.filter((key) => glob.test(key))];
  }),
  FLUSHALL: writes(-1, ({ keyspace }) => flush(keyspace)),
  FLUSHDB: writes(-1, ({ keyspace }) => flush(keyspace)),
};

function leftMs(keyspace: Keyspace, key: string): number {
  const entry = keyspace.get(key);
  if (entry === undefined) return -2;
  return entry.expiresAtMs === Infinity ? -1 : entry.expiresAtMs - keyspace.nowMs;
}

function expire(
  keyspace: Keyspace,
  [name = '', key = '', text = '', option]: readonly string[],
  { unitMs }: { readonly unitMs: number },
): RawReply {
  if (option !== undefined) {
    if (/^(?:nx|xx|gt|lt)$/i.test(option)) throw new UnknownCommand(`${name} … ${option}`);
    return new ModelError(`ERR Unsupported option ${option}`);
  }
  const count = integerOf(text);
  if (count === undefined) return NO_INTEGER;
  const lifeMs = count * unitMs;
  if (!Number.isSafeInteger(lifeMs + keyspace.nowMs)) return invalidExpiry(name.toLowerCase());
  const entry = keyspace.get(key);
  if (entry === undefined) return 0;
  if (lifeMs <= 0) keyspace.delete(key);
  else {
    entry.expiresAtMs = keyspace.nowMs + lifeMs;
    keyspace.changed(key);
  }
  return 1;
}

function flush(keyspace: Keyspace): RawReply {
  keyspace.clear();
  return OK;
}
