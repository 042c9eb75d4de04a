import { createHash } from 'node:crypto';

/** A Lua script and the name Redis keeps it under. */
export interface Script {
  readonly lua: string;
  readonly sha: string;
}

export const script = (lua: string): Script => ({
  lua,
  sha: createHash('sha1').update(lua).digest('hex'),
});

/** Gives a script `now`, the server's clock in µs, and `text(number)`: Lua's default format loses digits of numbers this large. */
export const CLOCK = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local function text(number) return string.format('%.0f', number) end
`;

/**
 * Further ahead of the server's clock no proposal is taken: a client that is mistaken must not carry the fences of all servers away.
 * In µs. Clocks that differ by more cost a second round trip for each grant, nothing else.
 */
export const PROPOSAL_BOUND_US = 1_000_000;
