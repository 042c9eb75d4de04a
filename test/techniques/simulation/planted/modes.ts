import type { PlantedBug } from './planted-bug.js';

const PLACES = 'All places in use together are never more than the limit';

const TOGETHER =
  'a key has any number of readers, and no other holder. With `limit: n`, a key has at most n holders, and no other.';

export const MODES: readonly PlantedBug[] = [
  {
    name: 'wrong-unit',
    file: 'lib/store/redis/lua/includes/holders.lua',
    find: 'local ends = now + ttl * 1000',
    replace: 'local ends = now + ttl',
    profile: 'modes',
    explanation: 'The end of a shared lease is computed in µs, but its TTL is in ms.',
    page: 'guarantees.md',
    breaks: TOGETHER,
  },
  {
    name: 'limit-off-by-one',
    file: 'lib/store/redis/lua/includes/holders.lua',
    find: 'if count + places_of(token) > limit and',
    replace: 'if count + places_of(token) > limit + 1 and',
    profile: 'modes',
    explanation: 'One more caller than the limit gets the key.',
    page: 'guarantees.md',
    breaks: TOGETHER,
  },
  {
    name: 'places-counted-as-one',
    file: 'lib/store/redis/lua/includes/holders.lua',
    find: 'if has_shadows then count = in_use(holders, count) end',
    replace: '',
    profile: 'modes',
    explanation: 'A holder of several places counts as a holder of one place.',
    page: 'guarantees.md',
    breaks: PLACES,
  },
  {
    name: 'set-limit-ignored',
    file: 'lib/store/redis/lua/includes/holders.lua',
    find: 'local limit = set or own',
    replace: 'local limit = own',
    profile: 'modes',
    explanation:
      'Each call is compared with its own `limit`, even if another limit is set for the key.',
    breaks: 'A limit that was set with `setLimit` applies to all calls',
  },
  {
    name: 'places-renewed-without-their-shadow',
    file: 'lib/store/redis/lua/includes/holders.lua',
    find: "if places_of(token) > 1 then redis.call('ZADD', holders, -ends, shadow(token)) end",
    replace:
      "if places_of(token) > 1 then redis.call('ZADD', holders, 'NX', -ends, shadow(token)) end",
    profile: 'modes',
    explanation: 'A renewal prolongs only one of several places, so the others end too early.',
    page: 'guarantees.md',
    breaks: PLACES,
  },
  {
    name: 'marker-not-refreshed',
    file: 'lib/store/redis/lua/includes/holders.lua',
    find: '    put_marker(main, holders, mode, phase)\n  else',
    replace:
      "    if redis.call('EXISTS', main) == 0 then put_marker(main, holders, mode, phase) end\n  else",
    profile: 'modes',
    explanation:
      'The marker and the holder set of a shared key expire with the first lease, although other holders joined or renewed later.',
    breaks: 'The marker keeps out all callers that want the key alone',
  },
  {
    name: 'readers-starve-writers',
    file: 'lib/store/redis/lua/acquire.lua',
    find: 'if not has_line or joins and (phase_of(main, holders, mode) or math.huge) <= joins then',
    replace: 'if not has_line or mode and phase_of(main, holders, mode) then',
    profile: 'modes',
    explanation: 'A reader joins the present readers even if a writer waits.',
    breaks:
      'A reader that comes while a writer waits has to wait behind it, and is refused if it does not wait',
  },
  {
    name: 'token-of-other-keys-passed-on',
    file: 'lib/store/redis/lua/acquire.lua',
    find: 'add_holder(main, holders, token, ttl, mode and phase_of(main, holders, mode) or first)',
    replace: 'add_holder(main, holders, token, ttl, first)',
    profile: 'modes',
    explanation:
      'A reader that joins a reader of several keys gets the larger fencing token of that reader.',
    breaks: 'Readers that later join only one of these keys do not get the larger token.',
  },
];
