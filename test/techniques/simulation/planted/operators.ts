import type { PlantedBug } from './planted-bug.js';

/** Operators who end locks, and forget work. */
export const OPERATORS: readonly PlantedBug[] = (
  [
    {
      name: 'operator-ends-later-holders',
      file: 'lib/admin/lock-admin.ts',
      find: 'const targets = targetsIn(found, ({ token }) => seen.get(leaseIdOf(token)));',
      replace: 'const targets = targetsIn(found, () => ({}));\n    void seen;',
      explanation: 'A release by an operator ends whichever locks hold the key by then.',
      breaks: 'Every later holder of the key keeps it, also a caller of the same process.',
    },
    {
      name: 'holder-released-before-it-is-told',
      file: 'lib/engine/interventions.ts',
      find: '    const told = await this.#tell(targets, intervention);\n',
      replace: '    const told: LeaseEnding[] = [];\n    void this.#tell(targets, intervention);\n',
      explanation: 'The keys of a lock that an operator ends are free before its holder knows.',
      breaks: 'The holder is notified before the key is free.',
    },
    {
      name: 'turn-ended-by-operator',
      file: 'lib/lease/lease-keeper.ts',
      find: "if (fencingToken !== undefined && fencingToken !== lease.fencingToken) return 'passed-on';",
      replace: "if (fencingToken !== undefined && fencingToken === -1) return 'passed-on';",
      explanation:
        'An operator ends the lock of another caller of the same process, which was given it since.',
      breaks: 'Every later holder of the key keeps it, also a caller of the same process.',
    },
    {
      name: 'forgets-work-that-was-done-since',
      file: 'lib/store/redis/node/redis-admin-store.ts',
      find: '`if known[1] ~= ARGV[1] or known[2] ~= ARGV[2] then return 0 end`,',
      replace: '`if not known[1] then return 0 end`,',
      explanation: 'An operator makes the work run again that has been done since the look.',
      breaks: '`forgetOnce` does nothing if the work has another state by now.',
    },
    {
      name: 'locks-of-other-instances-released',
      file: 'lib/admin/lock-admin.ts',
      find: '(makerIn(token) === id ? {} : undefined)',
      replace: '(makerIn(token) === id ? undefined : {})',
      explanation: 'The release of an instance ends the locks of all others.',
      breaks: '`releaseInstance` ends all locks of one instance, and no others.',
    },
  ] as const
).map((bug) => ({ ...bug, profile: 'operator' }));
