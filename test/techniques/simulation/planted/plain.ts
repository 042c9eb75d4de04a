import type { PlantedBug } from './planted-bug.js';

const PLAIN = 'lib/store/redis/scripts/plain.ts';
const GROWS = '**One key.** A later grant has a larger token';
const FIFO = 'first come, first served, over all processes';

/** The scripts of the plain case, the calls that many requests share, and what relies on them. */
export const PLAIN_CASE: readonly PlantedBug[] = [
  {
    name: 'line-overlooked-by-take',
    file: PLAIN,
    find: "redis.call('EXISTS', KEYS[i + 2], KEYS[i + 3]) == 0",
    replace: "redis.call('EXISTS', KEYS[i + 3]) == 0",
    profile: 'line',
    explanation: 'The script `take` takes a free key although a process is first in line.',
    breaks: FIFO,
  },
  {
    name: 'fence-overlooked-by-take',
    file: PLAIN,
    find: 'and last - fence < 0)',
    replace: 'and last - fence < 1e15)',
    profile: 'line',
    explanation: 'The script `take` grants the clock as a token, even if the fence is ahead of it.',
    breaks: GROWS,
  },
  {
    name: 'given-without-its-token',
    file: PLAIN,
    find: " and redis.pcall('GET', KEYS[i]) == ARGV[n]",
    replace: '',
    profile: 'line',
    explanation: 'The script `give` ends the lease of another client that holds the key now.',
    breaks: 'in case Redis executes the request late',
  },
  {
    name: 'line-overlooked-by-give',
    file: PLAIN,
    find: "redis.call('EXISTS', KEYS[i + 1]) == 0 and ",
    replace: '',
    profile: 'line',
    explanation: 'The script `give` ends a lease although a process waits, and does not wake it.',
    breaks: FIFO,
  },
];
