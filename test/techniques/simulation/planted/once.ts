import type { PlantedBug } from './planted-bug.js';

const SUPERSEDED =
  'If a slow attempt returns after another one has begun, its outcome is `superseded`, and nothing is recorded.';

export const ONCE: readonly PlantedBug[] = [
  {
    name: 'marked-by-any-attempt',
    file: 'lib/store/redis/lua/once.lua',
    find: "local is_ours = state == 'running' and whose == owner or",
    replace: "local is_ours = state == 'running' or",
    profile: 'once',
    explanation: 'The store accepts the end of an attempt while another attempt runs.',
    page: 'once.md',
    breaks: SUPERSEDED,
  },
  {
    name: 'superseded-attempt-accepted',
    file: 'lib/store/redis/lua/once.lua',
    find: 'if not is_ours and not is_again then return { 0 } end',
    replace: 'if not is_ours then return { 1 } end',
    profile: 'once',
    explanation:
      'An attempt reports that it is done after another attempt has begun, and the store confirms it.',
    page: 'once.md',
    breaks: SUPERSEDED,
  },
  {
    name: 'done-work-repeated',
    file: 'lib/store/redis/lua/once.lua',
    find: "if state == 'done' or state == 'exhausted' then",
    replace: "if state == 'exhausted' then",
    profile: 'once',
    explanation: 'Work that is done runs again.',
    page: 'once.md',
    breaks: 'That the work is done is remembered for `keepDone`, in Redis only.',
  },
];
