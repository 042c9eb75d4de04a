import type { PlantedBug } from './planted-bug.js';

const TOGETHER =
  'a key has any number of shared holders and no other. With `limit`, it has at most that number of holders with that limit, and no other.';

export const MODES: readonly PlantedBug[] = [
  {
    name: 'wrong-unit',
    file: 'lib/store/redis/scripts/holders.ts',
    find: "redis.call('ZADD', holders, now + ttl * 1000, token)",
    replace: "redis.call('ZADD', holders, now + ttl, token)",
    profile: 'modes',
    explanation: 'The end of a shared lease is counted in µs where the TTL is in ms.',
    breaks: TOGETHER,
  },
  {
    name: 'limit-off-by-one',
    file: 'lib/store/redis/scripts/holders.ts',
    find: 'if limit and count >= limit and',
    replace: 'if limit and count > limit and',
    profile: 'modes',
    explanation: 'One more than the limit is let in.',
    breaks: TOGETHER,
  },
  {
    name: 'marker-not-refreshed',
    file: 'lib/store/redis/scripts/holders.ts',
    find: "redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)\n    put_marker(main, holders, mode, phase)",
    replace:
      "redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)\n    if redis.call('EXISTS', main) == 0 then put_marker(main, holders, mode, phase) end",
    profile: 'modes',
    explanation:
      'The marker and the holder set end with the first lease, although others have joined or renewed since.',
    breaks: 'Other callers are excluded** by a marker at the main key',
  },
  {
    name: 'readers-starve-writers',
    file: 'lib/store/redis/scripts/acquire.ts',
    find: 'if not has_line or joins and (phase_of(main, holders, mode) or math.huge) <= joins then',
    replace: 'if not has_line or mode and phase_of(main, holders, mode) then',
    profile: 'modes',
    explanation: 'A reader joins those who read, also when a writer waits.',
    breaks:
      'A reader that comes while a writer waits stands behind it, and is refused if it does not wait',
  },
  {
    name: 'readers-starve-writers-of-a-quorum',
    file: 'lib/store/redis/scripts/acquire.ts',
    find: 'if must_queue(queue, holders) then',
    replace: 'if not mode and must_queue(queue, holders) then',
    profile: 'modes',
    explanation: 'Over several masters a reader joins those who read, also when a writer waits.',
    breaks: 'Readers do not join those before them while a writer waits',
  },
  {
    name: 'token-of-other-keys-passed-on',
    file: 'lib/store/redis/scripts/acquire.ts',
    find: 'add_holder(main, holders, token, ttl, mode and phase_of(main, holders, mode) or first)',
    replace: 'add_holder(main, holders, token, ttl, first)',
    profile: 'modes',
    explanation: 'Who joins a reader of several keys has the token of that one.',
    breaks: 'Readers that join a single key later do not get that one.',
  },
];
