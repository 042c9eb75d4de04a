import { isOneSlot } from './key-names.js';

/** What is kept for operators, all in one Cluster slot. Keys have no braces, so no lock can be kept there. */
export const adminNames = (prefix: string) => ({
  /** A sorted set: the ids of instances, by when they reported last. */
  index: `${prefix}{instances}`,
  /** A string: what an instance says of itself. */
  record: (id: string): string => `${prefix}{instances}:${id}`,
  /** A stream: what operators did. */
  audit: `${prefix}{audit}`,
});

const SIDE = /^\{(.*)\}:(?:queue|holders|once)$/s;
const SIDE_IN_ONE_SLOT = /^(.*):\{(?:queue|holders|once)\}$/s;

/**
 * Returns the key of a lock from a name in Redis. The name is that of its main key, or of a side key that marks it as
 * held, waited for or done. Returns `undefined` for every other name. The inverse of `keyNames`.
 */
export const keyIn =
  (prefix: string) =>
  (name: string): string | undefined => {
    const side = isOneSlot(prefix) ? SIDE_IN_ONE_SLOT : SIDE;
    const main = side.exec(name)?.[1] ?? name;
    const key = main.startsWith(prefix) ? main.slice(prefix.length) : '';
    return key === '' || /[{}<>]/.test(key) ? undefined : key;
  };
