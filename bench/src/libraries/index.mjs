/**
 * @typedef {object} Client One library, connected.
 * @property {(key: string, options: { ttl: number, wait: number }) => Promise<() => Promise<unknown>>} acquire
 *   waits for the lock and resolves with the function that releases it
 *
 * @typedef {object} Settings
 * @property {number} [retryMs] how long a library that polls pauses between two tries
 * @property {number} [jitterMs] by how much that varies, where it can
 * @property {string} [folder] Holdfast only: where it was built
 * @property {'memory'} [store] Holdfast only
 * @property {string} [client] Holdfast and the bare commands: a package of packages.mjs
 *
 * @typedef {(urls: readonly string[], settings?: Settings) => Promise<Client>} Open
 *
 * @typedef {object} Entrant A library with one choice of settings.
 * @property {string} label
 * @property {string} module
 * @property {Settings} settings
 */

const peer = (module, label, choices) =>
  choices.map((settings) => ({
    module,
    label: `${label}, ${settings.retryMs} ms`,
    settings,
  }));

const DEFAULT_OF_REDLOCK = { retryMs: 200, jitterMs: 100 };
const SHORT = { retryMs: 5, jitterMs: 5 };

/** Each with its default pause between two tries and with a short one: both can be the faster. */
export const peers = [
  ...peer('redlock5', 'redlock 5.0.0-beta.2', [DEFAULT_OF_REDLOCK, SHORT]),
  ...peer('redlock4', 'redlock 4.2.0', [DEFAULT_OF_REDLOCK, SHORT]),
  ...peer('sesamecare', '@sesamecare-oss/redlock 1.4.0', [DEFAULT_OF_REDLOCK, SHORT]),
  ...peer('redis-semaphore', 'redis-semaphore 5.8.0', [{ retryMs: 10 }, SHORT]),
  ...peer('redlock-universal', 'redlock-universal 0.8.5', [{ retryMs: 100 }, SHORT]),
];

/** One for each library. */
export const onePerLibrary = peers.filter(({ settings }) => settings === SHORT);

/** @type {Entrant} */
export const bare = { module: 'bare', label: 'the bare commands', settings: {} };

/** @type {(client: string) => Entrant} */
export const bareWith = (client) => ({
  module: 'bare-with',
  label: `the bare commands of ${client}`,
  settings: { client },
});

/** @type {(folder: string, settings?: Settings) => Entrant} */
export const holdfast = (folder, settings) => ({
  module: 'holdfast',
  label: `Holdfast of ${folder}`,
  settings: { folder, ...settings },
});

/** @type {(entrant: Entrant, urls: readonly string[]) => Promise<Client>} */
export async function openEntrant({ module, settings }, urls) {
  const { open } = await import(`./${module}.mjs`);
  return open(urls, settings);
}
