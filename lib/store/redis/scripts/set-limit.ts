import type { SetLimitOutcome } from '../../lock-store.js';
import { FENCE } from './fence.js';
import { HOLDERS, LIMIT_LIFE_MS } from './holders.js';
import { LINE, lineArgument } from './line.js';
import { callOn, CLOCK, orEmpty, script, type Verb } from './script.js';

interface SetLimitCall {
  readonly key: string;
  /** `undefined`: none is set any more. */
  readonly limit: number | undefined;
}

/** Sets the limit that counts for all holders of a key by a limit, and admits the callers in line that now fit. */
export const setLimitScript: Verb<SetLimitCall, SetLimitOutcome> = {
  encode({ key, limit }, server) {
    const encoded = callOn([key], server);
    encoded.push(orEmpty(limit), lineArgument(server.lineMode));
    return encoded;
  },
  decode: (reply, _request, _server, shortfall) =>
    reply === 1 ? (shortfall ?? { status: 'set' }) : undefined,
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
