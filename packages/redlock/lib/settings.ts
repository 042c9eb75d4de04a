/** The settings of node-redlock 5. */
export interface Settings {
  /** Default 0.01. */
  readonly driftFactor: number;
  /** Default 10; -1 waits indefinitely. */
  readonly retryCount: number;
  /** In ms, default 200. The longest wait is `retryCount * retryDelay`. The release wakes a waiting call. */
  readonly retryDelay: number;
  /** Has no effect: calls do not poll. */
  readonly retryJitter: number;
  /** In ms, default 500. It is only checked, as in node-redlock: a lease is renewed at a third of its duration. */
  readonly automaticExtensionThreshold: number;
  /** The database of the locks, as in `@sesamecare-oss/redlock`. Default: the database of each client. */
  readonly db?: number;
}

/** The longest lease and the longest wait of Holdfast: 100 years. */
export const LONGEST_MS = 100 * 365.25 * 86_400_000;

const DEFAULTS: Settings = {
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
};

/** As node-redlock: a value that is no number counts as missing, and so do settings that JavaScript leaves out. */
export function settingsFrom(
  given: Partial<Settings> | null | undefined,
  defaults: Settings = DEFAULTS,
): Settings {
  const numbers = Object.entries(given ?? {}).filter(([, value]) => typeof value === 'number');
  return { ...defaults, ...(Object.fromEntries(numbers) as Partial<Settings>) };
}

/** A shorter `wait` is refused. */
const SHORTEST_WAIT_MS = 50;

/** How long the retries of node-redlock take. The jitter is positive or negative, so it does not count. */
export function waitFrom({ retryCount, retryDelay }: Settings): number {
  const waitMs = retryCount === -1 ? Infinity : retryCount * retryDelay;
  if (waitMs > LONGEST_MS) return Infinity;
  return waitMs > 0 ? Math.max(SHORTEST_WAIT_MS, waitMs) : 0;
}
