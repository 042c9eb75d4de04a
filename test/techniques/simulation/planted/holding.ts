import type { PlantedBug } from './planted-bug.js';

const EXCLUSION = 'A key has at most one holder at a time';
const VALIDITY =
  'A holder counts its validity from the moment the request was **sent**: TTL − `clockDrift` × TTL − 2 ms.';

export const HOLDING: readonly PlantedBug[] = [
  {
    name: 'holder-overwritten',
    file: 'lib/store/redis/lua/take.lua',
    find: "ARGV[i], 'NX', 'PX'",
    replace: "ARGV[i], 'PX'",
    profile: 'line',
    explanation: 'The script `take` does not check whether the key is taken, like SET without NX.',
    page: 'guarantees.md',
    breaks: EXCLUSION,
  },
  {
    name: 'validity-without-drift',
    file: 'lib/lease/lease.ts',
    find: 'ttlMs - ttlMs * this.#foundation.options.clockDrift - 2',
    replace: 'ttlMs',
    profile: 'line',
    explanation:
      'The validity is the whole TTL, without an allowance for clocks of different speed.',
    breaks: VALIDITY,
  },
  {
    name: 'validity-from-the-answer',
    file: 'lib/queue/requests.ts',
    find: 'keeper.granted(request, asked, outcome, now)',
    replace: 'keeper.granted(request, { ...asked, sentAt: now }, outcome, now)',
    profile: 'line',
    explanation:
      'The validity of a lock counts from when the reply arrived, not from when the request was sent.',
    breaks: VALIDITY,
  },
  {
    name: 'renewal-from-the-answer',
    file: 'lib/lease/renewals.ts',
    find: 'lease.renewed(sent.sentAt, sent.ttlMs);',
    replace: 'lease.renewed(this.#foundation.scheduler.runtime.now(), sent.ttlMs);',
    profile: 'line',
    explanation:
      'The validity after a renewal counts from when the reply arrived, not from when the request was sent.',
    breaks: VALIDITY,
  },
  {
    name: 'jeopardy-ignored',
    file: 'lib/lease/renewals.ts',
    find: 'lease.endanger();',
    replace: 'lease.renewed(sent.sentAt, sent.ttlMs);',
    profile: 'line',
    explanation: 'A renewal without a reply counts as one that succeeded.',
    breaks: 'Renewals are tried again until the validity is over',
  },
  {
    name: 'loss-ignored',
    file: 'lib/lease/renewals.ts',
    find: "else if (outcome.status === 'lost') this.#lost(lease, outcome.reason, sent);",
    replace: "else if (outcome.status === 'lost') this.#plan(lease, retryDelayMs(lease.ttlMs));",
    profile: 'line',
    explanation: 'If a renewal reports that the lock is lost, it is tried again.',
    breaks: 'The old holder detects it at the next renewal',
  },
  {
    name: 'renewal-of-a-foreign-token',
    file: 'lib/store/redis/lua/extend.lua',
    find: 'elseif holder == token or may_join',
    replace: 'elseif holder and not mode or may_join',
    profile: 'line',
    explanation: 'A renewal overwrites the owner token of another client that holds the key now.',
    breaks: 'another caller gets the key at once. The old holder detects it at the next renewal',
  },
  {
    name: 'release-of-a-foreign-token',
    file: 'lib/store/redis/lua/includes/holders.lua',
    find: '  if not holds(main, holders, token) then\n    if mode and not is_open(main)',
    replace: '  if mode and not holds(main, holders, token) then\n    if not is_open(main)',
    profile: 'line',
    explanation: 'A release ends the lease of another client that holds the key now.',
    breaks: 'in case Redis executes the request late',
  },
  {
    name: 'restart-guard-ignored',
    file: 'lib/store/redis/lua/acquire.lua',
    find: 'if quarantined > 0 then',
    replace: 'if quarantined > math.huge then',
    profile: 'line',
    explanation:
      'A server that lost its leases grants keys at once, in spite of the restart guard.',
    breaks:
      'A script that does not find this key, or finds the name of another run in it, grants nothing for `maxTtl`.',
  },
  {
    name: 'put-back-for-the-old-validity',
    file: 'lib/store/redis/lua/extend.lua',
    find: 'local raised = math.max(fence, mine)',
    replace:
      'ttl = math.min(ttl, math.floor((sure_until - now) / 1000)) local raised = math.max(fence, mine)',
    profile: 'line',
    explanation:
      'A renewal puts a key back for what was left of the lease, and its holder counts on the whole TTL.',
    page: 'guarantees.md',
    breaks: EXCLUSION,
  },
  {
    name: 'replicas-not-waited-for',
    file: 'lib/store/redis/scripts/acquire.ts',
    find: "shortfall ?? {\n        status: 'granted',",
    replace: "{\n        status: 'granted',",
    profile: 'line',
    explanation: 'A lock is granted although not enough replicas have it.',
    breaks: 'a lock is granted, and renewed, only when `ack` replicas have it (`WAIT`)',
  },
  {
    name: 'min-hold-ignored',
    file: 'lib/lease/lease.ts',
    find: 'return Math.max(0, this.request.options.minHoldMs - heldMs);',
    replace: 'return Math.min(0, this.request.options.minHoldMs - heldMs);',
    profile: 'line',
    explanation: 'A release does not keep the keys for the rest of `minHold`.',
    breaks: 'No other caller gets the keys before that time is over',
  },
  {
    name: 'acquire-not-cleaned-up',
    file: 'lib/queue/requests.ts',
    find: 'if (outcome.sent !== false) keeper.discard({ keys, token: asked.token }, options.ttlMs);',
    replace: '',
    profile: 'line',
    explanation:
      'A lease that an acquire without a reply left in the store stays there for its TTL.',
    breaks:
      'It removes the owner token of its request at once, and tries again until Redis answers or the TTL is over',
  },
];
