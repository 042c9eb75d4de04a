/** One option of the command line. */
export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: true;
  /** What stands for the value in the help. */
  readonly value?: string;
  /** Whether an empty text is a value, too. */
  readonly mayBeEmpty?: true;
  /** Which values there are, if there are few. */
  readonly values?: readonly string[];
  readonly help: string;
}

/** The longest lines, the longest held, the names, or the first to end. */
export const SORTS = ['waiting', 'held', 'key', 'expires'] as const;

export const OPTIONS = {
  redis: {
    type: 'string',
    multiple: true,
    value: 'URL',
    help: 'The Redis to ask. Several: independent masters. Default: $REDIS_URL',
  },
  cluster: { type: 'boolean', help: 'The URLs are nodes of a Redis Cluster' },
  prefix: {
    type: 'string',
    value: 'TEXT',
    mayBeEmpty: true,
    help: 'The keyPrefix of the application. Default: lock:',
  },
  json: { type: 'boolean', help: 'Print one JSON document' },
  unresponsive: {
    type: 'boolean',
    help: 'Only where the instance is busy, frozen, cut off or dead',
  },
  detached: { type: 'boolean', help: 'Only locks that were detached, and wait to be attached' },
  failed: { type: 'boolean', help: 'Only once-only work that failed, or has no attempt left' },
  sort: {
    type: 'string',
    value: 'ORDER',
    values: SORTS,
    help: `Which come first: ${SORTS.join(', ')}. Default: waiting`,
  },
  limit: { type: 'string', value: 'N', help: 'Print at most N rows' },
  interval: { type: 'string', value: 'TIME', help: 'Between two looks: 500ms, 2s. Default: 2s' },
  reason: {
    type: 'string',
    value: 'TEXT',
    help: 'Why: the holder is notified, the audit keeps it',
  },
  'if-holder': {
    type: 'string',
    value: 'ID',
    help: 'Only if this holder, which "show" names, has the key. Several: with commas',
  },
  by: { type: 'string', value: 'NAME', help: 'Who you are. Default: user@host' },
  'dry-run': {
    type: 'boolean',
    short: 'n',
    help: 'Print what would be done, and change nothing',
  },
  'drop-in': { type: 'boolean', help: 'Keep the calls of redlock: change its import only' },
  yes: { type: 'boolean', short: 'y', help: 'Do not ask before acting' },
  help: { type: 'boolean', short: 'h', help: 'Print this text' },
  version: { type: 'boolean', short: 'v', help: 'Print the version' },
} as const satisfies Record<string, OptionSpec>;

export type OptionName = keyof typeof OPTIONS;

export const OPTION_NAMES = Object.keys(OPTIONS) as readonly OptionName[];

export const specOf = (name: OptionName): OptionSpec => OPTIONS[name];

/** Which Redis is meant. */
export const OF_REDIS: readonly OptionName[] = ['redis', 'cluster', 'prefix'];

/** The options of every command. */
export const COMMON: readonly OptionName[] = ['json', 'help', 'version'];

/** The options of one command: its own, and those that it shares. */
export const optionsOf = ({
  works,
  options,
}: {
  readonly works: 'locally' | 'with-redis';
  readonly options: readonly OptionName[];
}): readonly OptionName[] =>
  works === 'locally' ? [...options, ...COMMON] : [...options, ...OF_REDIS, ...COMMON];

/** The values that were given. */
export interface GivenOptions {
  readonly redis?: readonly string[];
  readonly cluster?: boolean;
  readonly prefix?: string;
  readonly json?: boolean;
  readonly unresponsive?: boolean;
  readonly detached?: boolean;
  readonly failed?: boolean;
  readonly sort?: string;
  readonly limit?: string;
  readonly interval?: string;
  readonly reason?: string;
  readonly 'if-holder'?: string;
  readonly by?: string;
  readonly 'dry-run'?: boolean;
  readonly 'drop-in'?: boolean;
  readonly yes?: boolean;
  readonly help?: boolean;
  readonly version?: boolean;
}
