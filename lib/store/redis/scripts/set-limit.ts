import { FENCE } from './fence.js';
import { HOLDERS, LIMIT_LIFE_MS } from './holders.js';
import type { KeyNames } from './key-names.js';
import { LINE, lineArgument, type LineMode } from './line.js';
import { callOn, CLOCK, malformed, orEmpty, script, type ScriptWithCodec } from './script.js';

export interface SetLimitCall {
  readonly names: KeyNames;
  /** `undefined`: none is set any more. */
  readonly limit: number | undefined;
  readonly lineMode: LineMode;
}

export interface SetLimitReply {
  readonly status: 'set';
}

/** Sets the limit that counts for all holders of a key by a limit, and admits the callers in line that now fit. */
export const setLimitScript: ScriptWithCodec<SetLimitCall, SetLimitReply> = {
  encode({ names, limit, lineMode }) {
    const encoded = callOn({ names: [names] });
    encoded.push(orEmpty(limit), lineArgument(lineMode));
    return encoded;
  },
  decode: (reply) => (reply === 1 ? { status: 'set' } : malformed(reply)),
  ...script(
    `--[[
  KEYS    main, fence, queue, holders of the key
  ARGV    1 limit ('' = none is set any more)
          2 how the line is decided: 'cluster', else standalone
  Reply   1
]]
${CLOCK}${FENCE}${HOLDERS}${LINE}
local name = limit_name(KEYS[4])
if ARGV[1] == '' then redis.call('DEL', name) else redis.call('SET', name, ARGV[1], 'PX', ${String(LIMIT_LIFE_MS)}) end
pcall(grant_next, KEYS[1], KEYS[3], KEYS[4], '', ARGV[2] == '')
return 1
`,
    'set-limit',
  ),
};
