import { script } from './script.js';

/** How many processes in line one release tells; the others are told by the next one, or look by themselves. */
const MOST_TOLD = 100;

/**
 * Gives keys back, where the lease is ours or, with an empty token, whoever's it is, and tells those who wait. KEYS: main, fence,
 * queue of each key. ARGV: token ('' = any). Answers the number of keys given back.
 *
 * The fence is raised above the lease that ends, so that a renewal that comes late finds nothing that looks like its own.
 */
export const releaseScript = script(`
local released = 0
for i = 1, #KEYS, 3 do
  -- pcall: what is no lock of anybody's (another type) does not keep the other keys from being given back.
  local holder = redis.pcall('GET', KEYS[i])
  if type(holder) == 'string' and (ARGV[1] == '' or holder == ARGV[1]) then
    redis.call('DEL', KEYS[i])
    if redis.call('EXISTS', KEYS[i + 1]) == 1 then redis.pcall('INCR', KEYS[i + 1]) end
    local inboxes = redis.pcall('ZRANGE', KEYS[i + 2], 0, ${String(MOST_TOLD - 1)})
    if #inboxes > 0 then
      redis.pcall('ZREM', KEYS[i + 2], unpack(inboxes))
      for _, inbox in ipairs(inboxes) do redis.pcall('PUBLISH', inbox, KEYS[i]) end
    end
    released = released + 1
  end
end
return released
`);
