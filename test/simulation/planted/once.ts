import type { PlantedBug } from './planted-bug.js';

const SUPERSEDED = 'A holder that returns after another attempt has begun can mark nothing';

export const ONCE: readonly PlantedBug[] = [
  {
    name: 'marked-by-any-attempt',
    file: 'lib/store/redis/scripts/once.ts',
    find: "local is_ours = state == 'running' and whose == owner or",
    replace: "local is_ours = state == 'running' or",
    profile: 'once',
    explanation: 'The end of an attempt is accepted while another one runs.',
    breaks: SUPERSEDED,
  },
  {
    name: 'superseded-attempt-accepted',
    file: 'lib/store/redis/scripts/once.ts',
    find: 'return { whose == owner and ended == what and 1 or 0 }',
    replace: 'return { 1 }',
    profile: 'once',
    explanation:
      'An attempt that was superseded gets the answer that it has marked the work as done.',
    breaks: SUPERSEDED,
  },
  {
    name: 'done-work-repeated',
    file: 'lib/store/redis/scripts/once.ts',
    find: "if state == 'done' or state == 'exhausted' then",
    replace: "if state == 'exhausted' then",
    profile: 'once',
    explanation: 'Work that is done is begun again.',
    breaks: 'What was done is remembered for `keepDone`, in Redis only.',
  },
];
