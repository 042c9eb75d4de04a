import type { PlantedBug } from './planted-bug.js';

const ALONE = 'From then on no other caller holds the keys.';
const TAKEN_BACK =
  'An upgrade that fails leaves the lock upgradeable, with the token that it had, and readers join it as before.';
const STAYS =
  'From the call of `downgrade()` until the release, no other caller holds the keys alone.';
const TOKENS = 'A downgraded lock keeps its token, and readers that join it have the same one.';

/** Locks that go on in another mode. */
export const MODE_CHANGES: readonly PlantedBug[] = [
  {
    name: 'downgrade-lets-writers-in',
    file: 'lib/store/redis/scripts/transfer.ts',
    find: '  add_holder(main, holders, to, ttl, phase)\n',
    replace:
      "  if mode and changes then redis.call('DEL', main) else add_holder(main, holders, to, ttl, phase) end\n",
    profile: 'modes',
    explanation: 'A downgrade releases the keys of the lock.',
    breaks: STAYS,
  },
  {
    name: 'downgrade-calls-nobody',
    file: 'lib/store/redis/scripts/transfer.ts',
    find: 'if changes then',
    replace: "if changes and line == 'cluster' then",
    profile: 'modes',
    explanation: 'Readers in line do not get the key when a lock is downgraded.',
    breaks: 'The readers that are first in line get the lock at once.',
  },
  {
    name: 'downgraded-token-forgotten',
    file: 'lib/store/redis/scripts/transfer.ts',
    find: '(phase_of(main, holders, mode) or tonumber(ARGV[6]))',
    replace: 'phase_of(main, holders, mode)',
    profile: 'modes',
    explanation: 'Readers that join a downgraded lock have another fencing token.',
    breaks: TOKENS,
  },
  {
    name: 'upgrade-does-not-wait',
    file: 'lib/store/redis/scripts/upgrade.ts',
    find: '  if not busy and in_the_way(main, holders, token) then busy = i end\n',
    replace: '',
    profile: 'modes',
    explanation: 'An upgrade is granted while other callers read.',
    breaks: 'An upgrade waits until all other readers of the keys are done.',
  },
  {
    name: 'upgrade-takes-no-place',
    file: 'lib/store/redis/scripts/upgrade.ts',
    find: "  if member ~= '' then\n    for i = 1, last, 4 do stands",
    replace: "  if member == 'nobody' then\n    for i = 1, last, 4 do stands",
    profile: 'modes',
    explanation: 'While an upgrade waits for readers, new readers join them.',
    breaks: 'While an upgrade waits, no new reader joins the present readers',
  },
  {
    name: 'upgraded-token-not-raised',
    file: 'lib/store/redis/scripts/upgrade.ts',
    find: 'local first = next_token(highest)',
    replace: 'local first = highest',
    profile: 'modes',
    explanation: 'An upgraded lock has the fencing token of the readers before it.',
    breaks: 'An upgraded lock gets a new token, larger than that of the readers before it.',
  },
  {
    name: 'upgrade-keeps-readers',
    file: 'lib/store/redis/scripts/upgrade.ts',
    find: "  redis.call('SET', KEYS[i], to, 'PX', ttl)\n  redis.call('DEL', KEYS[i + 3])\n",
    replace: "  redis.call('SET', KEYS[i + 1], text(first), 'KEEPTTL')\n",
    profile: 'modes',
    explanation: 'An upgrade is granted, and readers can still get the keys.',
    breaks: ALONE,
  },
  {
    name: 'upgrade-valid-from-the-answer',
    file: 'lib/lease/mode-changes.ts',
    find: 'if (isNew && lease.validForMsAt(now) > 0) lease.renewed(sentAt, ttlMs);',
    replace: 'if (isNew) lease.renewed(now, ttlMs);',
    profile: 'modes',
    explanation:
      'The validity after a change of mode counts from when the reply arrived, even if the lease was over by then.',
    breaks:
      'A holder counts its validity from the moment the request was **sent**: TTL − `clockDrift` × TTL − 2 ms.',
  },
  {
    name: 'upgrade-granted-after-its-caller-left',
    file: 'lib/lease/mode-changes.ts',
    find: '    learn(outcome);\n',
    replace: '    void Promise.resolve().then(() => learn(outcome));\n',
    profile: 'modes',
    explanation:
      'A caller gives up while its upgrade is on its way. The reply arrives after the check whether an upgrade must be reverted.',
    breaks: TAKEN_BACK,
  },
  {
    name: 'lost-lock-upgraded',
    file: 'lib/store/redis/scripts/upgrade.ts',
    find: "  if not holds(main, holders, upgradeable(token)) or is_older(to, redis.pcall('GET', main)) then",
    replace: "  if is_older(to, redis.pcall('GET', main)) then",
    profile: 'modes',
    explanation:
      'An upgrade of a lock that the server has forgotten succeeds, if nobody holds the keys by then.',
    breaks: 'An upgrade succeeds only if the caller held the lock without interruption',
  },
  {
    name: 'two-upgradeable-holders',
    file: 'lib/store/redis/scripts/holders.ts',
    find: "  if kind == 'upgradeable' and is_in(holders, '${THE_UPGRADEABLE}') and not is_in(holders, token) then return marker(mode) end\n",
    replace: '',
    profile: 'modes',
    explanation:
      'Two callers hold a key as upgradeable at once, and wait for each other when both upgrade.',
    breaks: 'a key has any number of shared holders, at most one upgradeable holder, and no other.',
  },
];
