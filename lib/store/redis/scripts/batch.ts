import { partsOf, script, type Batch, type Script, type ScriptCall } from './script.js';

/**
 * Makes a script that runs another one for several requests. The client sends one call, and the server begins and
 * answers one call (group commit). Each request has its own keys, arguments and reply. An error of one request is the
 * reply to that request only.
 *
 * @param one the script of a single request
 * @param usual Lua that answers the most frequent requests with fewer commands than `one`. It sets `replies[i]`, and
 *   `clock` if that belongs to the reply, for the requests in `easy`: those of one key that no request before them
 *   wants. Their keys begin behind `KEYS[key_at[i]]`, their arguments behind `ARGV[arg_at[i]]`.
 * @param plainReply what `one` would have replied instead of a number that `usual` has put into `replies`
 */
export const batchOf = (
  { lua: one, operation }: Pick<Script, 'lua' | 'operation'>,
  usual: string,
  plainReply: Batch['plainReply'],
): Batch => ({
  plainReply,
  ...script(
    `--[[
  KEYS    those of each request, one after the other
  ARGV    1 number of requests; then of each: number of its keys, number of its arguments, its arguments
  Reply   the server's clock in us or 0, then the answers in the same order: a number for a usual one, else that of the script
]]
local function one(KEYS, ARGV)
${one}
end
local count, replies, easy, wanted = tonumber(ARGV[1]), {}, {}, {}
local key_at, arg_at, key_counts, arg_counts = {}, {}, {}, {}
local key, arg, clock = 0, 1, 0
for i = 1, count do
  local its_keys, its_args = tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
  key_at[i] = key
  arg_at[i] = arg + 2
  key_counts[i] = its_keys
  arg_counts[i] = its_args
  if its_keys == 4 and not wanted[KEYS[key + 1]] then easy[#easy + 1] = i end
  for j = key + 1, key + its_keys, 4 do wanted[KEYS[j]] = true end
  key, arg = key + its_keys, arg + 2 + its_args
end
${usual}
for i = 1, count do
  if replies[i] == nil then
    local keys, args = {}, {}
    for j = 1, key_counts[i] do keys[j] = KEYS[key_at[i] + j] end
    for j = 1, arg_counts[i] do args[j] = ARGV[arg_at[i] + j] end
    local ok, reply = pcall(one, keys, args)
    -- Before Redis 7 a text.
    if not ok then reply = type(reply) == 'table' and reply or redis.error_reply(reply) end
    replies[i] = reply
  end
end
return { clock, unpack(replies) }
`,
    operation,
  ),
});

/** The answer to the request with that index; `undefined` for what is no answer to several. */
export function replyIn(batch: Batch, replies: unknown, index: number): unknown {
  if (!Array.isArray(replies)) return replies;
  const reply: unknown = replies[index + 1];
  return typeof reply === 'number' ? batch.plainReply(reply, replies[0]) : reply;
}

/** How many requests took the way of a single one. */
export const unusualIn = (replies: unknown): number =>
  Array.isArray(replies) ? replies.filter((reply) => typeof reply !== 'number').length : 0;

/** The call for several requests. */
export function batchCall(calls: readonly ScriptCall[]): ScriptCall {
  const batch = partsOf(0);
  for (const call of calls) {
    const [keyCount] = call;
    batch[0] += keyCount;
    for (let part = 1; part <= keyCount; part += 1) batch.push(call[part] ?? '');
  }
  batch.push(calls.length);
  for (const call of calls) {
    const [keyCount] = call;
    batch.push(keyCount, call.length - 1 - keyCount);
    for (let part = keyCount + 1; part < call.length; part += 1) batch.push(call[part] ?? '');
  }
  return batch;
}
