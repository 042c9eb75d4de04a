/** The names under which one key is kept. They share a Cluster slot. */
export interface KeyNames {
  /** A string: the owner token, with the TTL. What every Redlock client in any language writes. */
  readonly main: string;
  /** A string: the last fencing token. */
  readonly fence: string;
  /** A sorted set: the places of those who wait, by ticket. */
  readonly queue: string;
  /** A sorted set: the tokens of those who hold it together, by the time at which they end. */
  readonly holders: string;
  /** A string: the limit that was set. `holders.lua` makes the name from that of the holders. */
  readonly limit: string;
  /** A hash: what has become of work that is to be done once. */
  readonly once: string;
  /** A string: the number of the last caller that came to replace the holders. */
  readonly newest: string;
}

/** Redis' own rule: the first `{`, and the first `}` after it, with something in between (Cluster specification, "hash tags"). */
const HASH_TAG = /^[^{]*\{[^}]+\}/;

/**
 * Side keys get a suffix that no key can forge, because keys contain no braces. The whole name becomes the hash tag. If
 * the prefix has a tag of its own, the suffix carries the braces.
 */
export function keyNames(prefix: string): (key: string) => KeyNames {
  // Keys have no braces, so the prefix alone decides.
  if (HASH_TAG.test(prefix)) {
    return (key) => {
      const main = prefix + key;
      return {
        main,
        fence: `${main}:{fence}`,
        queue: `${main}:{queue}`,
        holders: `${main}:{holders}`,
        limit: `${main}:{holders}:limit`,
        once: `${main}:{once}`,
        newest: `${main}:{newest}`,
      };
    };
  }
  return (key) => {
    const main = prefix + key;
    return {
      main,
      fence: `{${main}}:fence`,
      queue: `{${main}}:queue`,
      holders: `{${main}}:holders`,
      limit: `{${main}}:holders:limit`,
      once: `{${main}}:once`,
      newest: `{${main}}:newest`,
    };
  };
}

/** What decides on the Cluster slot of a key, and brings anything else that has it between braces into the same one. */
export const hashTagOf = ({ queue }: KeyNames): string => /\{([^}]+)\}/.exec(queue)?.[1] ?? '';

/** On a Cluster: whether all keys are in one slot, because of the prefix. */
export const isOneSlot = (prefix: string): boolean => HASH_TAG.test(prefix);

/** Which keys the Redis user needs, as patterns of its ACL. */
export const keyPatterns = (prefix: string): readonly string[] =>
  isOneSlot(prefix) ? [`~${prefix}*`] : [`~${prefix}*`, `~{${prefix}*`];

/** A string: the run of the server that keeps the restart guard's account. Keys have no braces, so no lock can be kept there. */
export const epochName = (prefix: string): string => `${prefix}{epoch}`;

/** What is locked to see whether a server grants locks: no caller's key has a `<`, and no other node or trial has this name. */
export const trialKey = (node: string, trial: number): string => `<trial:${node}:${String(trial)}>`;

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
