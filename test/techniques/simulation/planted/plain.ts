import type { PlantedBug } from './planted-bug.js';

const GROWS = '**One key.** A later grant has a larger token';
const LEASE = 'lib/lease/lease.ts';
const FIFO = 'first come, first served, over all processes';

/** The scripts of the plain case, the calls that many requests share, and what relies on them. */
export const PLAIN_CASE: readonly PlantedBug[] = [
  {
    name: 'line-overlooked-by-take',
    file: 'lib/store/redis/lua/take.lua',
    find: "redis.call('EXISTS', KEYS[i + 2], KEYS[i + 3]) == 0",
    replace: "redis.call('EXISTS', KEYS[i + 3]) == 0",
    profile: 'line',
    explanation: 'The script `take` takes a free key although a process is first in line.',
    breaks: FIFO,
  },
  {
    name: 'fence-overlooked-by-take',
    file: 'lib/store/redis/lua/take.lua',
    find: 'and last - fence < 0',
    replace: 'and last - fence < 1e15',
    profile: 'line',
    explanation: 'The script `take` grants the clock as a token, even if the fence is ahead of it.',
    breaks: GROWS,
  },
  {
    name: 'given-without-its-token',
    file: 'lib/store/redis/lua/give.lua',
    find: " and redis.pcall('GET', KEYS[i]) == ARGV[n]",
    replace: '',
    profile: 'line',
    explanation: 'The script `give` ends the lease of another client that holds the key now.',
    breaks: 'in case Redis executes the request late',
  },
  {
    name: 'line-overlooked-by-give',
    file: 'lib/store/redis/lua/give.lua',
    find: "redis.call('EXISTS', KEYS[i + 1]) == 0 and ",
    replace: '',
    profile: 'line',
    explanation: 'The script `give` ends a lease although a process waits, and does not wake it.',
    breaks: FIFO,
  },
  {
    name: 'holders-overlooked-by-take',
    file: 'lib/store/redis/lua/take.lua',
    find: "redis.call('EXISTS', KEYS[i + 2], KEYS[i + 3]) == 0",
    replace: "redis.call('EXISTS', KEYS[i + 2]) == 0",
    profile: 'modes',
    explanation: 'The script `take` takes a key whose marker is gone although others share it.',
    breaks: 'Holdfast still refuses writers, and the next renewal of a holder puts the marker back',
  },
  {
    name: 'proposal-without-bound',
    file: 'lib/store/redis/lua/includes/proposal-bound.lua',
    find: 'PROPOSAL_BOUND_US = 1000000',
    replace: 'PROPOSAL_BOUND_US = 1000000000',
    profile: 'quorum',
    explanation: 'With several masters, a node accepts any fencing token that the client proposes.',
    breaks:
      'A token may be ahead of the clocks of the masters, by 5 ms and the time that the request takes (counted up to 100 ms)',
  },
  {
    name: 'error-of-all-not-asked-again',
    file: 'lib/store/redis/node/server.ts',
    find: "kind === 'error' && !isNotBegun(message)",
    replace: "kind === 'error' && !isNotBegun(message) && kind !== 'error'",
    profile: 'line',
    explanation: 'An error of one request is the answer to all that share its call.',
    breaks: '**Requests that share a call to Redis** get separate results',
  },
  {
    name: 'turns-faster-than-the-clock',
    file: LEASE,
    find: 'this.#granted.isFromClock === true && this.turns <= usSince / 2;',
    replace: 'this.#granted.isFromClock === true;',
    profile: 'line',
    explanation: 'The fencing tokens of turns may be ahead of the clock.',
    breaks: 'the last token of the key + 1, and the clock of Redis in microseconds',
  },
  {
    name: 'turns-from-any-token',
    file: LEASE,
    find: 'this.#granted.isFromClock === true && this.turns <= usSince / 2;',
    replace: 'this.turns <= usSince / 2;',
    profile: 'line',
    explanation:
      'Turns have tokens above one that was ahead of the clock, which the store does not know.',
    breaks: GROWS,
  },
  {
    name: 'turns-not-reported',
    file: 'lib/store/redis/lua/extend.lua',
    find: "if mine > fence and not damaged then redis.pcall('SET', fence_key, text(mine),",
    replace: "if fence == 0 and not damaged then redis.pcall('SET', fence_key, text(mine),",
    profile: 'line',
    explanation: 'A renewal does not raise the fence to the token of the last turn.',
    breaks: GROWS,
  },
  {
    name: 'turns-ended-plainly',
    file: LEASE,
    find: 'return this.#granted.isPlain === true && this.turns === 1;',
    replace: 'return this.#granted.isPlain === true;',
    profile: 'line',
    explanation: 'The release after turns does not raise the fence to the token of the last one.',
    breaks: GROWS,
  },
];
