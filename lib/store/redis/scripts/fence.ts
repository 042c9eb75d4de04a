import { PROPOSAL_BOUND_US } from './script.js';

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
