import type { PlantedBug } from './planted-bug.js';

/** Passwords that change. */
export const LOGINS: readonly PlantedBug[] = (
  [
    {
      name: 'refused-login-counts-as-outage',
      file: 'lib/store/redis/client/readiness.ts',
      find: "return this.fail('error', problem, 'for good');",
      replace: "return this.fail('error', problem);",
      explanation: 'A call that waits tries again while the server refuses the password.',
      breaks: 'no call is repeated: calls with `wait` fail at once, too.',
    },
    {
      name: 'no-renewal-after-a-refused-login',
      file: 'lib/lease/renewals.ts',
      find: 'this.#plan(lease, retryDelayMs(lease.fullValidityMs), sent.now);',
      replace:
        'this.#plan(lease, outcome.transient ? retryDelayMs(lease.fullValidityMs) : Infinity, sent.now);',
      explanation: 'A renewal that failed because of the password is not tried again.',
      breaks: 'Renewals are tried again until the validity is over',
    },
  ] as const
).map((bug) => ({ ...bug, profile: 'login' }));
