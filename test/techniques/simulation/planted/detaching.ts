import type { PlantedBug } from './planted-bug.js';

const ONCE = 'Exactly one caller can attach it, once.';
const UNTOUCHED =
  'A renewal, a release or a shutdown of the process that detached the lock does not change it.';

/** Locks that go to another process. */
export const DETACHING: readonly PlantedBug[] = [
  {
    name: 'attached-twice',
    file: 'lib/engine/attach.ts',
    find: "if (outcome.status === 'lost') {\n",
    replace: "if (outcome.status === 'lost' && outcome.reason !== 'attached') {\n",
    profile: 'modes',
    explanation: 'A lock that another process has attached can be attached once more.',
    breaks: ONCE,
  },
  {
    name: 'attached-in-quarantine',
    file: 'lib/engine/attach.ts',
    find: 'to: token, ttlMs, grants: true }',
    replace: 'to: token, ttlMs }',
    profile: 'modes',
    explanation: 'A server that restarted with older data lets a lock be attached again.',
    breaks: ONCE,
  },
  {
    name: 'detached-lock-renewed',
    file: 'lib/lease/lease-keeper.ts',
    find: "    lease.end('detached');\n",
    replace: '',
    profile: 'modes',
    explanation: 'A process goes on to renew what it has detached.',
    breaks: UNTOUCHED,
  },
  {
    name: 'detached-token-not-checked',
    file: 'lib/store/redis/lua/transfer.lua',
    find: 'is_given[i] = holds(main, holders, token)',
    replace: 'is_given[i] = not mode or holds(main, holders, token)',
    profile: 'modes',
    explanation: 'A lock is attached, or detached, even if another caller has its keys by now.',
    breaks: ONCE,
  },
  {
    name: 'detached-for-its-old-ttl',
    file: 'lib/lease/lease-keeper.ts',
    find: 'store.transfer({ keys, token, to, ttlMs, lastToken }),',
    replace: 'store.transfer({ keys, token, to, ttlMs: Math.min(ttlMs, lease.ttlMs), lastToken }),',
    profile: 'modes',
    explanation: 'The keys of a detached lock stay taken for no longer than its TTL was.',
    breaks: 'its keys stay taken for the `ttl` of `detach()`',
  },
  {
    name: 'attached-with-another-token',
    file: 'lib/engine/attach.ts',
    find: "const granted = { status: 'granted', fencingToken } as const;",
    replace: "const granted = { status: 'granted', fencingToken: fencingToken + 1 } as const;",
    profile: 'modes',
    explanation: 'An attached lock has another fencing token than before.',
    page: 'by-hand.md',
    breaks:
      'The attached lock has the keys, the mode and the **fencing token** of the detached lock.',
  },
  {
    name: 'attach-valid-from-the-answer',
    file: 'lib/engine/attach.ts',
    find: 'keeper.granted(request, { token, sentAt }, granted, now)',
    replace: 'keeper.granted(request, { token, sentAt: now }, granted, now)',
    profile: 'modes',
    explanation: 'The validity of an attached lock counts from the answer.',
    breaks:
      'A holder counts its validity from the moment the request was **sent**: TTL − `clockDrift` × TTL − 2 ms.',
  },
];
