import type { PlantedBug } from './planted-bug.js';

/** Clients of Redis other than ioredis. */
export const CLIENTS: readonly PlantedBug[] = [
  {
    name: 'broken-connection-of-another-client',
    file: 'lib/store/redis/client/redis-connection.ts',
    find: "if (!isReply(error)) return this.failure('connection', isBroken(error) ? CLOSED : message);",
    replace:
      "if (!isReply(error)) return isBroken(error) ? this.failure('connection', CLOSED) : { ...this.failure('connection', message), sent: false };",
    profile: 'clients',
    explanation:
      'A request that fails with the connection counts as one that was not sent, unless the client is ioredis. What it left in Redis is not removed.',
    breaks:
      'It removes the owner token of its request at once, and tries again until Redis answers or the TTL is over',
  },
];
