import type { PlantedBug } from './planted-bug.js';

const ALONE = 'From then on no other caller holds the keys.';
const TAKEN_BACK =
  'An upgrade that fails leaves the lock upgradeable, with the token that it had, and readers join it as before.';
const STAYS =
  'From the call of `downgrade()` to the release, no other caller holds the keys alone.';
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
    explanation: 'A lock that is downgraded gives its keys back.',
    breaks: STAYS,
  },
  {
    name: 'downgrade-calls-nobody',
    file: 'lib/store/redis/scripts/transfer.ts',
    find: "if changes and line ~= 'quorum' then",
    replace: "if changes and line == 'cluster' then",
    profile: 'modes',
    explanation: 'Readers in line are not let in when a lock is downgraded.',
    breaks: 'The readers that stand first in line enter at once.',
  },
  {
    name: 'downgraded-token-forgotten',
    file: 'lib/store/redis/scripts/transfer.ts',
    find: '(phase_of(main, holders, mode) or tonumber(ARGV[6]))',
    replace: 'phase_of(main, holders, mode)',
    profile: 'modes',
    explanation: 'Readers that join a downgraded lock have another token.',
    breaks: TOKENS,
  },
  {
    name: 'upgrade-does-not-wait',
    file: 'lib/store/redis/scripts/upgrade.ts',
    find: '  if not busy and in_the_way(main, holders, token) then busy = i end\n',
    replace: '',
    profile: 'modes',
    explanation: 'An upgrade is granted while others read.',
    breaks: 'An upgrade waits until all readers beside it are done.',
  },
  {
    name: 'upgrade-takes-no-place',
    file: 'lib/store/redis/scripts/upgrade.ts',
    find: "  if member ~= '' then\n    for i = 1, last, 4 do stands",
    replace: "  if member == 'nobody' then\n    for i = 1, last, 4 do stands",
    profile: 'modes',
    explanation: 'Readers join those whom an upgrade waits for.',
    breaks: 'While an upgrade waits, no reader joins those before it.',
  },
  {
    name: 'upgraded-token-not-raised',
    file: 'lib/store/redis/scripts/upgrade.ts',
    find: 'local first = next_token(highest)',
    replace: 'local first = highest',
    profile: 'modes',
    explanation: 'An upgraded lock has the token of the readers before it.',
    breaks: 'An upgraded lock has a new token, larger than that of the readers before it.',
  },
  {
    name: 'upgrade-keeps-readers',
    file: 'lib/store/redis/scripts/upgrade.ts',
    find: "  redis.call('SET', KEYS[i], to, 'PX', ttl)\n  redis.call('DEL', KEYS[i + 3])\n",
    replace: "  redis.call('SET', KEYS[i + 1], text(first), 'KEEPTTL')\n",
    profile: 'modes',
    explanation: 'An upgrade is granted, and the keys stay open to readers.',
    breaks: ALONE,
  },
  {
    name: 'upgrade-valid-from-the-answer',
    file: 'lib/lease/mode-changes.ts',
    find: 'if (isNew && lease.validForMsAt(now) > 0) lease.renewed(sentAt, ttlMs);',
    replace: 'if (isNew) lease.renewed(now, ttlMs);',
    profile: 'modes',
    explanation:
      'The validity after a change of mode counts from its answer, also when the lease was over by then.',
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
      'A caller that gives up while an upgrade is on its way gets the answer after it has checked what is to be taken back.',
    breaks: TAKEN_BACK,
  },
  {
    name: 'two-upgradeable-holders',
    file: 'lib/store/redis/scripts/holders.ts',
    find: "  if kind == 'upgradeable' and is_in(holders, '${THE_UPGRADEABLE}') and not is_in(holders, token) then return marker(mode) end\n",
    replace: '',
    profile: 'modes',
    explanation:
      'Two hold a key as upgradeable at once, and wait for each other when both upgrade.',
    breaks: 'a key has any number of shared holders, at most one upgradeable holder, and no other.',
  },
];
