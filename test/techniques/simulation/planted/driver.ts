import type { PlantedBug } from './planted-bug.js';

const DRIVER_STORE = 'lib/store/driver/driver-store.ts';

/** Locks that a driver keeps in another database. */
export const DRIVER: readonly PlantedBug[] = (
  [
    {
      name: 'loss-at-a-driver-ignored',
      file: DRIVER_STORE,
      find: "if ((await this.#ask('extend', key, lease)).status === 'lost')",
      replace: "if ((await this.#ask('extend', key, lease)).status !== 'extended' && key === '')",
      explanation:
        'A renewal that finds that the database has lost the lock counts as one that succeeded.',
      breaks: 'A lock that the database has lost is lost at its next renewal.',
    },
    {
      name: 'driver-waited-for-indefinitely',
      file: DRIVER_STORE,
      find: 'const reply = await Promise.race([asked, timeIsUp]);',
      replace: 'timeIsUp.catch(() => undefined);\n      const reply = await asked;',
      explanation: 'An operation of a driver has no time limit.',
      breaks: 'An operation that takes longer than `nodeTimeout` counts as failed.',
    },
    {
      name: 'driver-keeps-some-of-several-keys',
      file: DRIVER_STORE,
      find: 'const taken = keys.slice(0, index).reverse();',
      replace: 'const taken = keys.slice(0, 0 * index).reverse();',
      explanation: 'A call for several keys keeps those that it got, although another one is held.',
      breaks:
        'If one of several keys is held, the keys that the call has taken already are released at once.',
    },
  ] as const
).map((bug) => ({ ...bug, profile: 'driver' }));
