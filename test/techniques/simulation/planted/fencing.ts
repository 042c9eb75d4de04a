import type { PlantedBug } from './planted-bug.js';

const GROWS = 'A later grant of a key has a larger token';

export const FENCING: readonly PlantedBug[] = [
  {
    name: 'fence-not-looked-at',
    file: 'lib/store/redis/lua/acquire.lua',
    find: 'local first = math.max(now, highest + 1)',
    replace: 'local first = now',
    profile: 'line',
    explanation:
      "The fencing token is the time of the server's clock, even if the last token was larger.",
    page: 'guarantees.md',
    breaks: GROWS,
  },
  {
    name: 'fence-of-one-key',
    file: 'lib/store/redis/lua/acquire.lua',
    find: 'for i = 1, last, 5 do\n  raise_fence(KEYS[i + 1],',
    replace: 'for i = 1, 5, 5 do\n  raise_fence(KEYS[i + 1],',
    profile: 'line',
    explanation: 'For several keys, the acquire script raises only the fence of the first key.',
    page: 'guarantees.md',
    breaks:
      'A call with several keys has one token, which is larger than the last token of each key.',
  },
  {
    name: 'token-far-ahead',
    file: 'lib/store/redis/quorum/quorum-acquire.ts',
    find: 'const PROPOSAL_SLACK_US = 5_000;',
    replace: 'const PROPOSAL_SLACK_US = 900_000;',
    profile: 'quorum',
    explanation:
      'With several masters, the client proposes a fencing token 900 ms ahead of the clocks.',
    breaks:
      'A token may be ahead of the clocks of the masters, by 5 ms and the time that the request takes (counted up to 100 ms)',
  },
  {
    name: 'token-not-agreed',
    file: 'lib/store/redis/quorum/quorum-acquire.ts',
    find: 'if (missing <= 0) return granted;',
    replace: 'if (missing <= this.#quorum) return granted;',
    profile: 'quorum',
    explanation:
      'With several masters, the largest token of the votes is not written to a majority.',
    breaks:
      'If the nodes returned different tokens, the largest is written to a majority before the lock is granted. So the next grant has a larger token, whichever nodes it comes from.',
  },
];
