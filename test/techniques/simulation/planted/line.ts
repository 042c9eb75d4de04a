import type { PlantedBug } from './planted-bug.js';

const EXCLUSION = 'A key has at most one holder at a time';
const FIFO = 'get the lock in the order in which they came, one waiting caller of each at a time';
const EARLIER = 'A call that waits for several keys holds some of them only briefly.';
const NO_NEED =
  'The line itself can be lost (`FLUSHALL`, eviction, `DEL` of its key in Redis). A caller in that line then waits for at most 5 s although the key is free.';

export const LINE: readonly PlantedBug[] = [
  {
    name: 'line-not-woken',
    file: 'lib/store/redis/lua/release.lua',
    find: "if line ~= 'quorum' then\n  for i = 1, #KEYS, 5 do pcall(grant_next,",
    replace: "if line == 'cluster' then\n  for i = 1, #KEYS, 5 do pcall(grant_next,",
    profile: 'line',
    explanation: 'A release does not give the key to the first process in line.',
    page: 'guarantees.md',
    breaks: FIFO,
  },
  {
    name: 'dead-waiter-not-skipped',
    file: 'lib/store/redis/lua/includes/places.lua',
    find: 'asked[channel] = reply.err ~= nil or tonumber(reply[2 * i]) > 0',
    replace: 'asked[channel] = true',
    profile: 'line',
    explanation: 'A process that died in line still gets claims.',
    page: 'guarantees.md',
    breaks: '**A process that dies in line** delays no other caller.',
  },
  {
    name: 'place-lost-on-asking-again',
    file: 'lib/store/redis/lua/acquire.lua',
    find: "redis.pcall('ZADD', queue, 'NX', ticket, member)",
    replace: "redis.pcall('ZADD', queue, text(now), member)",
    profile: 'line',
    explanation: 'A caller that asks again goes to the end of the line.',
    page: 'guarantees.md',
    breaks: FIFO,
  },
  {
    name: 'place-not-taken-again',
    file: 'lib/store/redis/lua/acquire.lua',
    find: "local added = redis.pcall('ZADD', queue, 'NX', ticket, member)",
    replace:
      "local added = (ARGV[6] or '') ~= '' and busy == 1 and 1 or redis.pcall('ZADD', queue, 'NX', ticket, member)",
    profile: 'line',
    explanation: 'A caller with a ticket counts as waiting in line, even if the line was lost.',
    breaks: NO_NEED,
  },
  {
    name: 'line-overtaken',
    file: 'lib/store/redis/lua/acquire.lua',
    find: 'if has_line[i] and in_order then grant_next_at(i, token, before(i)) end',
    replace: '',
    profile: 'line',
    explanation: 'A caller that finds a key free does not give it to the first process in line.',
    page: 'guarantees.md',
    breaks: FIFO,
  },
  {
    name: 'claim-not-confirmed',
    file: 'lib/store/redis/lua/acquire.lua',
    find: '  add_holder(main, holders, token, ttl, mode and phase_of(main, holders, mode) or first)',
    replace:
      '  if not holds(main, holders, token) then add_holder(main, holders, token, ttl, mode and phase_of(main, holders, mode) or first) end',
    profile: 'line',
    explanation:
      'A caller that gets the key from the line keeps the short TTL of its claim (the temporary grant).',
    page: 'guarantees.md',
    breaks: EXCLUSION,
  },
  {
    name: 'held-key-claimed',
    file: 'lib/store/redis/lua/includes/line.lua',
    find: 'local blocked = token and not is_far and in_the_way(main, holders, token)',
    replace:
      'local blocked = token and not is_far and admitted == 0 and in_the_way(main, holders, token)',
    profile: 'modes',
    explanation:
      'The second process in line gets the key together with the first, even if they may not hold it together.',
    page: 'guarantees.md',
    breaks:
      'a key has any number of readers, and no other holder. With `limit: n`, a key has at most n holders, and no other.',
  },
  {
    name: 'later-key-kept',
    file: 'lib/store/redis/lua/acquire.lua',
    find: 'for j = 1, i > 1 and last or 0, 5 do',
    replace: 'for j = 1, 0, 5 do',
    profile: 'line',
    explanation: 'A caller that has waited for one key keeps it while it waits for another one.',
    breaks: EARLIER,
  },
  {
    name: 'earlier-keys-held-throughout',
    file: 'lib/queue/earlier-keys.ts',
    find: 'const FIRST_LIMIT_MS = 100;',
    replace: 'const FIRST_LIMIT_MS = 30_000;',
    profile: 'line',
    explanation: 'A call that waits for a busy key holds the keys before it for 30 s.',
    breaks: EARLIER,
  },
  {
    name: 'abandoned-caller-served',
    file: 'lib/queue/caller.ts',
    find: '    this.chain?.delete(this);\n',
    replace: '',
    profile: 'line',
    explanation:
      'A caller that has stopped waiting still gets the lock in its turn, and never releases it.',
    page: 'guarantees.md',
    breaks: '**An HTTP handler** leaves the line when its client disconnects.',
  },
  {
    name: 'place-not-left',
    file: 'lib/queue/waiting-line.ts',
    find: '    if (this.#place === undefined) pending.end();\n    else void this.#leave().then(pending.end);\n',
    replace: '    pending.end();\n',
    profile: 'line',
    explanation:
      'When the last caller of a process has stopped waiting, the place of the process stays in line.',
    page: 'guarantees.md',
    breaks: '**An HTTP handler** leaves the line when its client disconnects.',
  },
  {
    name: 'turns-without-bound',
    file: 'lib/queue/hand-over.ts',
    find: '    (!tenure.othersWait || tenure.turns < handoff.turns || isTooShort(handoff, sinceMs)) &&\n    sinceMs < handoff.tenureMs &&\n',
    replace: '    sinceMs < handoff.tenureMs * 1_000 &&\n',
    profile: 'line',
    explanation: 'The callers of one process pass the lock to each other without a limit.',
    breaks:
      'The option `handoff` limits how many turns there are before another process gets the lock',
  },
  {
    name: 'no-look-after-reconnecting',
    file: 'lib/store/redis/wakeups/redis-inbox.ts',
    find: 'if (open) this.#onMessage(undefined);',
    replace: 'if (open) return;',
    profile: 'line',
    explanation:
      'After the subscriber has reconnected, no caller tries again, so missed wake-ups stay missed.',
    breaks: 'then all waiting callers try again, because a release may have been missed',
  },
];
