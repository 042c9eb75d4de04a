import { PROPOSAL_BOUND_US } from './script.js';

/**
 * The largest fencing token from which a script continues: every sum with it is still a safe integer. Larger values,
 * and values that are no token, were written by other software.
 */
export const LARGEST_FENCE = 9e15;

/** Lua for whether `fence` is one from which a script continues. */
export const IS_FENCE = `fence and fence >= 0 and fence <= ${String(LARGEST_FENCE)} and fence % 1 == 0`;

/**
 * Gives a script `fence_at(key)`: the fencing token that is stored there, 0 for none; or nil and an error to answer with, which names the
 * key. And `fence_of(stored, key)`, the same where it was read already. A token that is granted has to be a safe integer, or
 * the next one would not be larger.
 */
export const FENCE = `
local function fence_of(stored, key)
  if not stored then return 0 end
  local fence = type(stored) == 'string' and tonumber(stored)
  if ${IS_FENCE} then return fence end
  return nil, redis.error_reply('ERR the key "' .. key .. '" does not hold a fencing token that Holdfast wrote: delete it')
end
local function fence_at(key) return fence_of(redis.pcall('GET', key), key) end
`;

/**
 * So far a token may be ahead of the clock that turns count on from it, in us. The shortest TTL is longer: when the lease of a
 * holder that died is over, the clock is past all of its turns.
 */
const AHEAD_OF_TURNS_US = 20_000;

/** Whether turns may count on from a token that was granted when the clock showed this. */
export const isFromClock = (token: number, clockUs: number): boolean =>
  token - clockUs <= AHEAD_OF_TURNS_US;

/** The token of a grant whose fence is behind the clock: the clock, or a proposal that is ahead of it by no more than the bound. */
export const tokenOf = (clockUs: number, proposal: number): number =>
  proposal > clockUs && proposal - clockUs <= PROPOSAL_BOUND_US ? proposal : clockUs;
