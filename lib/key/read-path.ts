import { LockKeyError } from '../errors.js';
import { describeValue } from './encode.js';
import { placeholder, type KeyPath, type RequestRoot } from './key-path.js';
import type { Location } from './locate.js';

/** Where a path begins. */
type Start = Exclude<Location, { readonly from: 'fire-time' | 'class' }>;

/** The parts of a request that templates read: raw, before pipes. */
export type RequestValues = Readonly<Partial<Record<RequestRoot, unknown>>>;

const start = (
  location: Start,
  args: readonly unknown[],
  request: RequestValues | undefined,
): unknown => {
  switch (location.from) {
    case 'argument':
      return args[location.index];
    case 'rest':
      return args.slice(location.index);
    case 'request':
      return request?.[location.path.head];
  }
};

/**
 * Makes the function that reads a path from a call.
 *
 * @param path as its author wrote it
 * @param what the name of the placeholder in errors
 */
export function pathReader(path: KeyPath, location: Start, what: string) {
  const own = location.from === 'request' ? location.path : path;
  // Node's HTTP parser lower-cases the names of headers.
  const segments =
    location.from === 'request' && own.head === 'headers'
      ? own.segments.map((segment, depth) => (depth === 0 ? segment.toLowerCase() : segment))
      : own.segments;

  return (args: readonly unknown[], request: RequestValues | undefined): unknown => {
    if (location.from === 'request' && request === undefined)
      throw new LockKeyError({
        problem:
          `${what} is read from the request, but the method was called without one. ` +
          'Take it from a parameter instead, or lock where the request is handled.',
      });
    let value = start(location, args, request);
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
