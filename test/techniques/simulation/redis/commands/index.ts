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

export const commandNamed = (name: string): Command | undefined =>
  COMMANDS.get(name) ?? COMMANDS.get(name.toUpperCase());
