import { script } from './script.js';

/**
 * Renews keys of many leases. KEYS: main, fence of each key. ARGV: ms for which a fence outlives its lease, then token and ttl ms of
 * each key. Answers one number for each key: 1 renewed, 0 gone, -1 somebody else's, or an error's text.
 *
 * Each key for itself, so that one of a wrong type does not keep the others from being renewed. PEXPIRE works when memory is full,
 * SET does not.
 */
export const extendScript = script(`
local keep = tonumber(ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local answers = {}
for i = 1, #KEYS, 2 do
  local token, ttl = ARGV[i + 1], ARGV[i + 2]
  local holder = redis.pcall('GET', KEYS[i])
  if type(holder) == 'table' then
    answers[#answers + 1] = holder.err
  elseif not holder then
    answers[#answers + 1] = 0
  elseif holder ~= token then
    answers[#answers + 1] = -1
  else
    redis.call('PEXPIRE', KEYS[i], ttl)
    local fence = redis.pcall('GET', KEYS[i + 1])
    fence = type(fence) == 'string' and tonumber(fence) or now
    local ahead = math.max(0, math.ceil((fence - now) / 1000))
    redis.pcall('PEXPIRE', KEYS[i + 1], string.format('%.0f', ttl + keep + ahead))
    answers[#answers + 1] = 1
  end
end
return answers
`);
