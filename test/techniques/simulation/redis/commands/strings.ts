import type { Keyspace } from '../keyspace.js';
import {
  invalidExpiry,
  NO_INTEGER,
  OK,
  SYNTAX,
  UnknownCommand,
  WRONG_TYPE,
  type RawReply,
} from '../replies.js';
import { grows, reads, type Command } from './command.js';
import { integerOf } from './parse.js';

export const STRING_COMMANDS: Readonly<Record<string, Command>> = {
  GET: reads(2, ({ keyspace }, argv) => {
    const entry = keyspace.get(argv[1] as string);
    if (entry === undefined) return null;
    return typeof entry.value === 'string' ? entry.value : WRONG_TYPE;
  }),
  MGET: reads(-2, ({ keyspace }, [, ...keys]) =>
    keys.map((key) => {
      const value = keyspace.get(key)?.value;
      return typeof value === 'string' ? value : null;
    }),
  ),
  SET: grows(-3, ({ keyspace }, argv) => set(keyspace, argv)),
  INCR: grows(2, ({ keyspace }, [, key = '']) => increment(keyspace, key)),
};

interface SetOptions {
  readonly condition: 'NX' | 'XX' | undefined;
  readonly keepsTtl: boolean;
  readonly expiry: Expiry | undefined;
  /** With `expiry`. */
  readonly text: string;
}

interface Expiry {
  readonly unitMs: number;
  readonly since: 'now' | 'zero';
}

const EXPIRIES = new Map<string, Expiry>([
  ['PX', { unitMs: 1, since: 'now' }],
  ['EX', { unitMs: 1_000, since: 'now' }],
  ['PXAT', { unitMs: 1, since: 'zero' }],
  ['EXAT', { unitMs: 1_000, since: 'zero' }],
]);

function set(keyspace: Keyspace, argv: readonly string[]): RawReply {
  const key = argv[1] as string;
  let expiresAtMs = Infinity;
  if (argv.length > 3) {
    const options = optionsOf(argv);
    if (options === undefined) return SYNTAX;
    const { condition, keepsTtl, expiry, text } = options;
    if (expiry !== undefined) {
      const count = integerOf(text);
      if (count === undefined) return NO_INTEGER;
      expiresAtMs = count * expiry.unitMs + (expiry.since === 'now' ? keyspace.nowMs : 0);
      if (count <= 0 || !Number.isSafeInteger(expiresAtMs)) return invalidExpiry('set');
    }
    const entry = keyspace.get(key);
    if (condition !== undefined && (condition === 'NX') === (entry !== undefined)) return null;
    if (keepsTtl && entry !== undefined) expiresAtMs = entry.expiresAtMs;
  }
  keyspace.set(key, argv[2] as string, expiresAtMs);
  return OK;
}

function increment(keyspace: Keyspace, key: string): RawReply {
  const { value = '0', expiresAtMs } = keyspace.get(key) ?? {};
  if (typeof value !== 'string') return WRONG_TYPE;
  const count = integerOf(value);
  if (count === undefined) return NO_INTEGER;
  keyspace.set(key, String(count + 1), expiresAtMs);
  return count + 1;
}

function optionsOf(argv: readonly string[]): SetOptions | undefined {
  let condition: SetOptions['condition'];
  let expiry: Expiry | undefined;
  let [keepsTtl, text] = [false, ''];
  for (let index = 3; index < argv.length; index += 1) {
    const given = argv[index] as string;
    const known = EXPIRIES.get(given);
    const name = known === undefined ? given.toUpperCase() : given;
    const found = known ?? EXPIRIES.get(name);
    if (found !== undefined) {
      index += 1;
      if (keepsTtl || expiry !== undefined || index === argv.length) return undefined;
      [expiry, text] = [found, argv[index] as string];
    } else if (name === 'NX' || name === 'XX') {
      if (condition !== undefined && condition !== name) return undefined;
      condition = name;
    } else if (name === 'KEEPTTL') {
      if (expiry !== undefined) return undefined;
      keepsTtl = true;
    } else if (name === 'GET') {
      throw new UnknownCommand('SET … GET');
    } else {
      return undefined;
    }
  }
  return { condition, keepsTtl, expiry, text };
}
