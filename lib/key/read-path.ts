import { LockKeyError } from '../errors.js';
import { describeValue } from './encode.js';
import { placeholder, type KeyPath, type RequestRoot } from './key-path.js';
import type { Location } from './locate.js';

/** The parts of a request that templates read: raw, before pipes. */
export type RequestValues = Readonly<Partial<Record<RequestRoot, unknown>>>;

/** One call, as templates read it. */
export interface Call {
  readonly args: readonly unknown[];
  readonly request: RequestValues | undefined;
  readonly className: string | undefined;
  /** The time for which it was scheduled. */
  readonly fireTime: () => string | undefined;
}

const start = (location: Location, { args, request, className, fireTime }: Call): unknown => {
  switch (location.from) {
    case 'argument':
      return args[location.index];
    case 'rest':
      return args.slice(location.index);
    case 'request':
      return request?.[location.path.head];
    case 'class':
      return className;
    case 'fire-time':
      return fireTime();
  }
};

/**
 * Makes the function that reads a path from a call.
 *
 * @param path as its author wrote it
 * @param what the name of the placeholder in errors
 */
export function pathReader(path: KeyPath, location: Location, what: string) {
  const own = location.from === 'request' ? location.path : path;
  // Node's HTTP parser lower-cases the names of headers.
  const segments =
    location.from === 'request' && own.head === 'headers'
      ? own.segments.map((segment, depth) => (depth === 0 ? segment.toLowerCase() : segment))
      : own.segments;

  return (call: Call): unknown => {
    const { request } = call;
    if (location.from === 'request' && request === undefined)
      throw new LockKeyError({
        problem:
          `${what} is read from the request, but the method was called without one. ` +
          'Take it from a parameter instead, or lock where the request is handled.',
      });
    let value = start(location, call);
    for (const [depth, segment] of segments.entries()) {
      // Not into strings: for ?ids=42 the path <query.ids.0> would find the letter "4".
      if (typeof value !== 'object' || value === null)
        throw new LockKeyError({
          problem: `${what} is undefined, because ${placeholder(own, depth)} is ${describeValue(value)}. Make sure that it is set before the call.`,
          fromRequest: request !== undefined,
          what,
        });
      value = (value as Readonly<Record<string, unknown>>)[segment];
    }
    return value;
  };
}
