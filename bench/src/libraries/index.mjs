/**
 * @typedef {object} Client One library, connected.
 * @property {(key: string, options: { ttl: number, wait: number, mode?: 'shared', limit?: number, places?: number }) => Promise<() => Promise<unknown>>} acquire
 *   waits for the lock and resolves with what gives it back
 * @property {() => Promise<unknown>} close
 *
 * @typedef {object} Settings
 * @property {number} [retryMs] how long a library that polls pauses between two tries
 * @property {number} [jitterMs] by how much that varies, where it can
 * @property {boolean} [waits] Holdfast only: `acquire`, or else `tryAcquire`
 * @property {boolean} [fencing] the bare commands only: whether a script makes a fencing token
 *
 * @typedef {(urls: readonly string[], settings?: Settings) => Promise<Client>} Open
 *
 * @typedef {object} Entrant A library with one choice of settings.
 * @property {string} id
 * @property {string} label with its settings
 * @property {string} library
 * @property {'holdfast' | 'bare' | 'peer'} kind
 * @property {string} module
 * @property {Settings} settings
 */

/** With its default pauses and with short ones: both can be the faster. redlock 4, never the best peer, only with short ones, to save time. */
const peers = [
  [
    'redlock5',
    'redlock 5.0.0-beta.2',
    [
      { retryMs: 200, jitterMs: 100 },
      { retryMs: 5, jitterMs: 5 },
    ],
  ],
  ['redlock4', 'redlock 4.2.0', [{ retryMs: 5, jitterMs: 5 }]],
  [
    'sesamecare',
    '@sesamecare-oss/redlock 1.4.0',
    [
      { retryMs: 200, jitterMs: 100 },
      { retryMs: 5, jitterMs: 5 },
    ],
  ],
  ['redis-semaphore', 'redis-semaphore 5.8.0', [{ retryMs: 10 }, { retryMs: 5 }]],
  ['redlock-universal', 'redlock-universal 0.8.5', [{ retryMs: 100 }, { retryMs: 5 }]],
];

/** @type {readonly Entrant[]} */
export const entrants = [
  {
    id: 'holdfast',
    label: 'Holdfast',
    library: 'Holdfast',
    kind: 'holdfast',
    module: 'holdfast',
    settings: {},
  },
  {
    id: 'holdfast-try',
    label: 'Holdfast, tryAcquire',
    library: 'Holdfast, tryAcquire',
    kind: 'holdfast',
    module: 'holdfast',
    settings: { waits: false },
  },
  {
    id: 'bare',
    label: 'SET NX PX + script',
    library: 'SET NX PX + script',
    kind: 'bare',
    module: 'bare',
    settings: {},
  },
  {
    id: 'fenced',
    label: 'the same, with a fencing token',
    library: 'the same, with a fencing token',
    kind: 'bare',
    module: 'bare',
    settings: { fencing: true },
  },
  {
    id: 'scripts-alone',
    label: 'the scripts of Holdfast, nothing else',
    library: 'the scripts of Holdfast, nothing else',
    kind: 'bare',
    module: 'scripts-alone',
    settings: {},
  },
  ...peers.flatMap(([module, library, choices]) =>
    choices.map((settings) => ({
      id: `${module}-${settings.retryMs}`,
      label: `${library}, ${settings.retryMs} ms`,
      library,
      kind: 'peer',
      module,
      settings,
    })),
  ),
];

export const byId = (id) => entrants.find((one) => one.id === id);

export const holdfast = byId('holdfast');
export const bare = byId('bare');

/** All settings, for those who wait. */
export const waiting = entrants.filter(({ kind, id }) => kind !== 'bare' && id !== 'holdfast-try');

/** One for each library, with the shortest pauses. */
export const onePerLibrary = waiting.filter(({ module }, at) => waiting[at + 1]?.module !== module);

/** @type {(id: string, urls: readonly string[]) => Promise<Client>} */
export async function openEntrant(id, urls) {
  const { module, settings } = byId(id);
  const { open } = await import(`./${module}.mjs`);
  return open(urls, settings);
}
