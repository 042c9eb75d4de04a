import type { Keyspace } from '../keyspace.js';
import {
  invalidExpiry,
  ModelError,
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
  GET: reads(2, ({ keyspace }, [, key = '']) => {
    const entry = keyspace.get(key);
    if (entry === undefined) return null;
    return typeof entry.value === 'string' ? entry.value : WRONG_TYPE;
  }),
  SET: grows(-3, ({ keyspace }, argv) => set(keyspace, argv)),
};

interface SetOptions {
  readonly condition?: 'NX' | 'XX';
  readonly keepsTtl?: true;
  readonly expiry?: {
    readonly unitMs: number;
    readonly since: 'now' | 'zero';
    readonly text: string;
  };
}

const EXPIRIES: Readonly<Record<string, Omit<NonNullable<SetOptions['expiry']>, 'text'>>> = {
  PX: { unitMs: 1, since: 'now' },
  EX: { unitMs: 1_000, since: 'now' },
  PXAT: { unitMs: 1, since: 'zero' },
  EXAT: { unitMs: 1_000, since: 'zero' },
};

function set(keyspace: Keyspace, argv: readonly string[]): RawReply {
  const [, key = '', value = ''] = argv;
  let expiresAtMs = Infinity;
  if (argv.length > 3) {
    const options = optionsOf(argv);
    if (options instanceof ModelError) return options;
    if (options.expiry !== undefined) {
      const at = instant(options.expiry, keyspace.nowMs);
      if (at instanceof ModelError) return at;
      expiresAtMs = at;
    }
    const entry = keyspace.get(key);
    if (options.condition !== undefined && (options.condition === 'NX') === (entry !== undefined))
      return null;
    if (options.keepsTtl && entry !== undefined) expiresAtMs = entry.expiresAtMs;
  }
  keyspace.set(key, value, expiresAtMs);
  return OK;
}

function optionsOf(argv: readonly string[]): SetOptions | ModelError {
  const options: { -readonly [Name in keyof SetOptions]: SetOptions[Name] } = {};
  for (let index = 3; index < argv.length; index += 1) {
    const name = (argv[index] as string).toUpperCase();
    const expiry = EXPIRIES[name];
    if (name === 'NX' || name === 'XX') {
      if (options.condition !== undefined && options.condition !== name) return SYNTAX;
      options.condition = name;
    } else if (name === 'KEEPTTL') {
      if (options.expiry !== undefined) return SYNTAX;
      options.keepsTtl = true;
    } else if (expiry !== undefined) {
      index += 1;
      const text = argv[index];
      if (options.keepsTtl || options.expiry !== undefined || text === undefined) return SYNTAX;
      options.expiry = { ...expiry, text };
    } else if (name === 'GET') {
      throw new UnknownCommand('SET … GET');
    } else {
      return SYNTAX;
    }
  }
  return options;
}

function instant(
  { unitMs, since, text }: NonNullable<SetOptions['expiry']>,
  nowMs: number,
): number | ModelError {
  const count = integerOf(text);
  if (count === undefined) return NO_INTEGER;
  const at = count * unitMs + (since === 'now' ? nowMs : 0);
  return count > 0 && Number.isSafeInteger(at) ? at : invalidExpiry('set');
}
