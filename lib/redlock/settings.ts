/** As node-redlock 5 has them. */
export interface Settings {
  /** Default 0.01. */
  readonly driftFactor: number;
  /** Default 10; -1 waits without end. */
  readonly retryCount: number;
  /** In ms, default 200. With `retryCount` it says how long to wait: `retryCount * retryDelay`. A waiting call is woken by the release. */
  readonly retryDelay: number;
  /** Has no effect: nobody polls. */
  readonly retryJitter: number;
  /** In ms, default 500. Only checked, as node-redlock does: a lease is renewed at a third of its duration. */
  readonly automaticExtensionThreshold: number;
}

const DEFAULTS: Settings = {
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
};

/** What is no number counts as not given. */
export function settingsFrom(given: Partial<Settings>, defaults: Settings = DEFAULTS): Settings {
  const numbers = Object.entries(given).filter(([, value]) => typeof value === 'number');
  return { ...defaults, ...(Object.fromEntries(numbers) as Partial<Settings>) };
}

/** How long the retries of node-redlock take: the jitter goes both ways. */
export const waitFrom = ({ retryCount, retryDelay }: Settings): number =>
  retryCount === -1 ? Infinity : Math.max(0, retryCount * retryDelay);
