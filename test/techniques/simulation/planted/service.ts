import type { PlantedBug } from './planted-bug.js';

export const SERVICE: readonly PlantedBug[] = [
  {
    name: 'answer-of-another-request',
    file: 'lib/store/redis/node/shared-calls.ts',
    find: 'reply.value[index]',
    replace: 'reply.value[0]',
    profile: 'line',
    explanation: 'All requests that share a call to Redis get the reply to the first of them.',
    breaks: '**Requests that share a call to Redis** get separate results',
  },
  {
    name: 'nested-call-locks-again',
    file: 'lib/sections/scope.ts',
    find: 'for (const section of inner?.enclosing(owner) ?? []) {',
    replace: 'for (const section of inner?.enclosing({}) ?? []) {',
    profile: 'line',
    explanation:
      'A nested call, inside code that already holds its keys, asks the store for another lock.',
    page: 'guarantees.md',
    breaks: 'A nested call has the token of the lock that it runs under.',
  },
  {
    name: 'shutdown-leaves-a-lease',
    file: 'lib/engine/shutdown.ts',
    find: "  for (const lease of keeper.leases) keeper.lose(lease, 'shutdown');\n",
    replace: '',
    profile: 'line',
    explanation: 'A shutdown does not end the locks that are still held when its time is over.',
    page: 'guarantees.md',
    breaks: 'Then the remaining locks are lost (`shutdown`), and all locks are released.',
  },
  {
    name: 'timer-left',
    file: 'lib/time/clock.ts',
    find: '  } finally {\n    cancel();\n  }',
    replace: '  } finally {\n    void cancel;\n  }',
    profile: 'line',
    explanation: 'The timer of the shutdown keeps running after the shutdown is done.',
    page: 'guarantees.md',
    breaks: 'Locks are released by the end of `shutdownTimeout` anyway.',
  },
];
