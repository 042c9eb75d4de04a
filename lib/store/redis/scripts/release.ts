import {
  callOn,
  isCount,
  lineArgument,
  luaText,
  orEmpty,
  putsBack,
  script,
  trimmed,
  type Verb,
} from './script.js';

export interface ReleaseCall {
  readonly keys: readonly string[];
  readonly token: string;
  /** The last fencing token that was used, if it is known. */
  readonly lastToken?: number | undefined;
  /** The place in line to leave; '' for none. */
  readonly member: string;
  /**
   * Which callers in line are notified. Default: all that the release may concern. `'nobody'`: the callers that this
   * vote refused have a reason of their own to try again.
   */
  readonly wakes?: 'nobody' | undefined;
  /** For how many ms the keys stay taken with their token, instead of being free at once. */
  readonly keepMs?: number | undefined;
}

/**
 * Releases keys and passes them to the next in line.
 *
 * With `'nobody'`, no caller is woken: votes over several masters were not enough.
 *
 * The fence is raised above the last token that was used. So a late renewal that would put the key back finds the fence
 * touched. A fence that the server forgot is written again:
 * - above all tokens of the lease that ends, if one is known
 * - otherwise below all of them: a token that was never granted must not block a holder
 */
export const releaseScript: Verb<
  ReleaseCall,
  { readonly status: 'released' } | { readonly status: 'not-held' }
> = {
  encode({ keys, token, lastToken, member, wakes, keepMs = 0 }, server) {
    const encoded = callOn(keys, server);
    encoded.push(
      token,
      lineArgument(server.lineMode),
      orEmpty(lastToken),
      putsBack(server) ? server.options.fenceKeepMs : '',
      member,
      wakes ?? '',
      keepMs > 0 ? Math.ceil(keepMs) : '',
    );
    return trimmed(encoded);
  },
  decode: (reply, { keys }) =>
    isCount(reply) ? { status: reply === keys.length ? 'released' : 'not-held' } : undefined,
  ...script(luaText('release'), 'release'),
};
