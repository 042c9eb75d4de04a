import ioredis from './ioredis.cjs';
import type { Command } from './redis-client.js';

/** The keys that a command names. If ioredis does not know the command, as those of modules, the first argument is taken for a key. */
export function keysIn([name, ...args]: Command): readonly string[] {
  const known = name.toLowerCase();
  if (!(known in ioredis.Redis.prototype)) return args.slice(0, 1).map(String);
  return new ioredis.Command(known, args).getKeys().map(String);
}
