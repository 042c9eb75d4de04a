import type { PlantedBug } from './planted-bug.js';

const GROWS = '**One key.** A later grant has a larger token';

export const FENCING: readonly PlantedBug[] = [
  {
    name: 'fence-not-looked-at',
    file: 'lib/store/redis/scripts/acquire-free.ts',
    find: 'local first = math.max(now, highest + 1)',
    replace: 'local first = now',
    profile: 'line',
    explanation:
      'The fencing token is the clock of the server, also when that is behind the last token.',
    breaks: GROWS,
  },
  {
    name: 'fence-of-one-key',
    file: 'lib/store/redis/scripts/acquire.ts',
    find: 'for i = 1, last, 4 do\n  raise_fence(KEYS[i + 1],',
    replace: 'for i = 1, 4, 4 do\n  raise_fence(KEYS[i + 1],',
    profile: 'line',
    explanation: 'The acquire script raises the fence of the first of several keys only.',
    breaks:
      'A call with several keys has one token, which is larger than the last one of each of them.',
  },
  {
    name: 'token-far-ahead',
    file: 'lib/store/redis/quorum/quorum-acquire.ts',
    find: 'const PROPOSAL_SLACK_US = 5_000;',
    replace: 'const PROPOSAL_SLACK_US = 900_000;',
    profile: 'quorum',
    explanation: 'Over several masters the proposed token is 900 ms ahead of the clocks.',
    breaks:
      'A token may be ahead of their clocks, by 5 ms and the time that the request takes (counted up to 100 ms)',
  },
  {
    name: 'token-not-agreed',
    file: 'lib/store/redis/quorum/quorum-acquire.ts',
    find: 'if (missing <= 0) return granted;',
    replace: 'if (missing <= this.#quorum) return granted;',
    profile: 'quorum',
    explanation: 'Nobody writes the largest token of the votes back to a majority.',
    breaks:
      'If they did not agree, it is written to a majority before the lock is granted. So the next grant is larger, whichever nodes it comes from.',
  },
];
