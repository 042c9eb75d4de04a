import type { Command } from './command.js';
import { HASH_COMMANDS } from './hashes.js';
import { KEY_COMMANDS } from './keys.js';
import { SERVER_COMMANDS } from './server.js';
import { SORTED_SET_COMMANDS } from './sorted-sets.js';
import { STRING_COMMANDS } from './strings.js';

const COMMANDS = new Map<string, Command>(
  Object.entries({
    ...KEY_COMMANDS,
    ...STRING_COMMANDS,
    ...HASH_COMMANDS,
    ...SORTED_SET_COMMANDS,
    ...SERVER_COMMANDS,
  }),
);

/** Whether a command has as many parts as it needs. */
export function fits({ arity }: Command, argv: readonly string[]): boolean {
  return arity > 0 ? argv.length === arity : argv.length >= -arity;
}

/** Those whose arguments are all keys. Of the others that have keys, the first argument is the only one. */
const OF_MANY_KEYS = new Set(['DEL', 'EXISTS', 'MGET']);

/** The keys that a command names. */
export function keysOf([name = '', ...args]: readonly string[]): readonly string[] {
  const known = name.toUpperCase();
  if (Object.hasOwn(SERVER_COMMANDS, known)) return [];
  return OF_MANY_KEYS.has(known) ? args : args.slice(0, 1);
}

export const commandNamed = (name: string): Command | undefined =>
  COMMANDS.get(name) ?? COMMANDS.get(name.toUpperCase());
