import { closest, distance } from 'fastest-levenshtein';
import { LockConfigurationError } from '../errors.js';
import { describe, shortened } from '../errors/describe.js';
import { warnOfFormerName } from '../errors/former-names.js';
import { resolve, type Resolved, type Schema } from './schema.js';

/** Where something belongs that is no option here, or what other libraries call what is one; each a sentence. */
export type Elsewhere = Readonly<Record<string, string>>;

/** A kind of call, as messages need it. */
export interface Kind<S extends Schema = Schema> {
  /** What has the options: `run()`, `LockModule`. */
  readonly called: string;
  readonly options: S;
  readonly elsewhere?: Elsewhere;
  /** Former names of options, each with the current one. */
  readonly formerNames?: Readonly<Record<string, string>>;
}

/**
 * The options of a call, checked, in the units of the library.
 *
 * @param path what stands before the names in messages: `restartGuard.`
 * @throws LockConfigurationError
 */
export function checkedOptions<S extends Schema>(
  kind: Kind<S>,
  given: object,
  path = '',
): Resolved<S> {
  refuseUnknown(kind, given);
  return resolve(kind.options, withCurrentNames(kind, given), path);
}

/** @throws LockConfigurationError for an option that is given under both names */
function withCurrentNames({ called, formerNames }: Kind, given: object): object {
  if (formerNames === undefined) return given;
  const values = given as Readonly<Record<string, unknown>>;
  const renamed: PropertyDescriptorMap = {};
  for (const [former, name] of Object.entries(formerNames)) {
    const value = values[former] ?? undefined;
    if (value === undefined) continue;
    if ((values[name] ?? undefined) !== undefined)
      throw new LockConfigurationError(
        `${called} has "${former}" and "${name}", which are two names of one option. Give "${name}" only.`,
      );
    warnOfFormerName(`The option "${former}" of ${called}`, `"${name}"`);
    renamed[name] = { value };
  }
  // Options may be an instance of a class, with accessors.
  return Object.create(given, renamed) as object;
}

/**
 * For JavaScript, and for options that are not there.
 *
 * @param remedy what to write instead
 * @throws LockConfigurationError
 */
export function refuseNoObject(called: string, given: unknown, remedy?: () => string): void {
  // Nothing in a list, a Map, a Date or a signal has the name of an option: they would count as no options.
  const isOther = given instanceof Date || given instanceof AbortSignal;
  if (typeof given === 'object' && given !== null && !isOther && !(Symbol.iterator in given))
    return;
  const received = Array.isArray(given) ? 'a list' : describe(given);
  const end = remedy === undefined ? '' : ` ${remedy()}`;
  throw new LockConfigurationError(
    `${called} takes its options as an object, received ${received}.${end}`,
  );
}

/**
 * Refuses what no option is called, and says what was probably meant. A name that belongs elsewhere may be there without a value, as in
 * `{ ...shared, wait: undefined }`.
 *
 * @throws LockConfigurationError
 */
export function refuseUnknown(
  { called, options, elsewhere = {}, formerNames = {} }: Kind,
  given: object,
  remedy?: () => string,
): void {
  refuseNoObject(called, given, remedy);
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(options, name) || Object.hasOwn(formerNames, name)) continue;
    const isKnown = Object.hasOwn(elsewhere, name);
    if (isKnown && (given as Readonly<Record<string, unknown>>)[name] === undefined) continue;
    const names = Object.keys(options);
    const hint = isKnown ? ` ${elsewhere[name] ?? ''}` : suggestion(name, names);
    throw new LockConfigurationError(
      `${called} has no option "${shortened(name)}".${hint} Its options are ${names.join(', ')}.`,
    );
  }
}

/** Begins with a space, or is empty. */
function suggestion(unknown: string, names: readonly string[]): string {
  const near = closest(unknown, names);
  return distance(unknown, near) <= Math.min(3, near.length / 2) ? ` Did you mean "${near}"?` : '';
}

const WAIT = 'Give "wait", how long to wait: a waiting call is woken by the release.';
const TTL = 'Give "ttl": how long a lease lasts unless it is renewed.';

/** What other libraries call the options of a lock. */
export const OTHER_WORDS: Elsewhere = {
  timeout: 'Give "wait" for how long to wait, or "maxHold" for how long to hold.',
  duration: TTL,
  lockTimeout: TTL,
  retryCount: WAIT,
  retryDelay: WAIT,
  retryJitter: WAIT,
  retryInterval: WAIT,
  acquireTimeout: WAIT,
  acquireAttemptsLimit: WAIT,
  automaticExtensionThreshold: 'Give "autoExtend": a lease is renewed at a third of its "ttl".',
  refreshInterval: 'Give "autoExtend": a lease is renewed at a third of its "ttl".',
  driftFactor: 'Give "clockDrift" to LockModule.',
};
