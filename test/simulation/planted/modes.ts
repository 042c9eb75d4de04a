import type { PlantedBug } from './planted-bug.js';

const PLACES = 'All places in use together are never more than the limit';

const TOGETHER =
  'a key has any number of shared holders, at most one upgradeable holder, and no other. With `limit`, it has at most that number of holders with that limit, and no other.';

export const MODES: readonly PlantedBug[] = [
  {
    name: 'wrong-unit',
    file: 'lib/store/redis/scripts/holders.ts',
    find: 'local ends = now + ttl * 1000',
    replace: 'local ends = now + ttl',
    profile: 'modes',
    explanation: 'The end of a shared lease is counted in µs where the TTL is in ms.',
    breaks: TOGETHER,
  },
  {
    name: 'limit-off-by-one',
    file: 'lib/store/redis/scripts/holders.ts',
    find: 'if count + places_of(token) > limit and',
    replace: 'if count + places_of(token) > limit + 1 and',
    profile: 'modes',
    explanation: 'One more than the limit is let in.',
    breaks: TOGETHER,
  },
  {
    name: 'places-counted-as-one',
    file: 'lib/store/redis/scripts/holders.ts',
    find: 'if has_shadows then count = in_use(holders, count) end',
    replace: '',
    profile: 'modes',
    explanation: 'A holder of several places counts for one.',
    breaks: PLACES,
  },
  {
    name: 'set-limit-ignored',
    file: 'lib/store/redis/scripts/holders.ts',
    find: 'local limit = set or own',
    replace: 'local limit = own',
    profile: 'modes',
    explanation: 'Each call goes by the limit that it states, whatever limit is set for the key.',
    breaks: 'A limit that was set counts for all calls',
  },
  {
    name: 'places-renewed-without-their-shadow',
    file: 'lib/store/redis/scripts/holders.ts',
    find: "if places_of(token) > 1 then redis.call('ZADD', holders, -ends, shadow(token)) end",
    replace:
      "if places_of(token) > 1 then redis.call('ZADD', holders, 'NX', -ends, shadow(token)) end",
    profile: 'modes',
    explanation: 'A renewal keeps one of several places, and the others end with the first lease.',
    breaks: PLACES,
  },
  {
    name: 'marker-not-refreshed',
    file: 'lib/store/redis/scripts/holders.ts',
    find: '    put_marker(main, holders, mode, phase)\n  else',
    replace:
      "    if redis.call('EXISTS', main) == 0 then put_marker(main, holders, mode, phase) end\n  else",
    profile: 'modes',
    explanation:
      'The marker and the holder set end with the first lease, although others have joined or renewed since.',
    breaks: 'It keeps out all callers that want the key alone',
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
