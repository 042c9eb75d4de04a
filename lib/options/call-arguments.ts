import { LockConfigurationError } from '../errors.js';
import { CALLS, NO_OPTIONS } from './acquire-options.js';
import { describe } from '../errors/describe.js';
import { TRAVELS } from './detach-options.js';
import { plain } from './schema.js';
import { refuseNoObject, refuseUnknown, type Kind } from './unknown-option.js';

type Work = (...args: never[]) => unknown;

/** The calls that take options. The arguments of `runOnce` are separated where such work is done. */
type Call = keyof typeof CALLS | keyof typeof TRAVELS | 'runOnce';

const KINDS: Readonly<Partial<Record<Call, Kind>>> = { ...CALLS, ...TRAVELS };

/**
 * The options of a call, checked for what TypeScript checks of them: JavaScript passes anything.
 *
 * @throws LockConfigurationError
 */
export function optionsOf<Options extends object>(
  call: Call,
  options: Options | undefined,
): Options {
  if (options === undefined) return NO_OPTIONS as Options;
  const kind = KINDS[call];
  const remedy = (): string => remedyFor(call, options);
  if (kind === undefined) refuseNoObject(`${call}()`, options, remedy);
  else refuseUnknown(kind, options, remedy);
  return kind === undefined ? options : plain(kind.options, options);
}

/**
 * The arguments that come after the keys: `(work)` or `(options, work)`.
 *
 * @throws LockConfigurationError
 */
export function optionsAndWork<Options extends object, W extends Work>(
  call: Call,
  rest: readonly [work: W] | readonly [options: Options | undefined, work: W],
): readonly [Options, W] {
  const [options, work] = rest.length === 1 ? [undefined, rest[0]] : rest;
  if (typeof work === 'function') return [optionsOf(call, options), work];
  throw new LockConfigurationError(
    typeof options === 'function'
      ? `${call}() takes the options before the work: ${call}('order:42', { ttl: '30s' }, async () => { … }).`
      : `${call}() needs the work as its last argument, a function, received ${describe(work)}. Write ${call}('order:42', async () => { … }), ` +
          'or take a lock by hand with acquire().',
  );
}

function remedyFor(call: string, options: unknown): string {
  if (typeof options === 'function')
    return "Work that is to be done under a lock goes to run('order:42', work).";
  if (Array.isArray(options)) return "Several keys are one list: ['a', 'b'].";
  if (options instanceof AbortSignal) return 'Give { signal }.';
  const duration = typeof options === 'number' || typeof options === 'string';
  const given = duration ? describe(options) : '5_000';
  if (Object.hasOwn(TRAVELS, call))
    return `Give { ttl: ${given} } for how long the keys stay taken.`;
  return `Give { wait: ${given} } for how long to wait, or { ttl: ${given} } for how long a lease lasts unless it is renewed.`;
}
