/** Redis' own rule: the first `{`, and the first `}` after it, with something in between (Cluster specification, "hash tags"). */
const HASH_TAG = /^[^{]*\{[^}]+\}/;

/** On a Cluster: whether all keys are in one slot, because of the prefix. The names of side keys then have their braces elsewhere. */
export const isOneSlot = (prefix: string): boolean => HASH_TAG.test(prefix);

/** Which keys the Redis user needs, as patterns of its ACL. */
export const keyPatterns = (prefix: string): readonly string[] =>
  isOneSlot(prefix) ? [`~${prefix}*`] : [`~${prefix}*`, `~{${prefix}*`];
