import { createHash } from 'node:crypto';
import type { Unavailable } from '../../lock-store.js';
import type { KeyNames } from './key-names.js';
import { luaFile } from '../lua/lua-file.js';

/** A Lua script and the name Redis keeps it under. */
export interface Script {
  /** What it does, for telemetry. */
  readonly operation: string;
  readonly lua: string;
  readonly sha: string;
}

/** What one run of a script is given, as EVAL takes it: the number of keys, the keys, the arguments. */
export type ScriptCall = readonly [keyCount: number, ...keysAndArguments: (string | number)[]];

/**
 * What decides on the line: one Redis, which knows who listens; a Cluster, where that depends on the channel; or none of several masters.
 */
export type LineMode = 'standalone' | 'cluster' | 'quorum';

/** The argument of scripts: nothing in the most frequent case. */
export const lineArgument = (mode: LineMode): string => (mode === 'standalone' ? '' : mode);

/** What requests are given of the server that they are sent to. */
export interface ServerFacts {
  readonly names: (key: string) => KeyNames;
  readonly lineMode: LineMode;
  readonly options: {
    /** A fence outlives its lease by this; the largest step back of the server's clock that tokens survive. */
    readonly fenceKeepMs: number;
    readonly restartGuard?: RestartGuard | undefined;
  };
  /** With a restart guard: the key of its account. */
  readonly epoch?: string | undefined;
}

/** No votes from a node that may have forgotten leases, until all that it may have forgotten are over. */
export interface RestartGuard {
  /** The longest TTL of any lease. */
  readonly maxTtlMs: number;
  /** Whether a node that was never seen before is a new one, and not one that lost everything. */
  readonly bootstrap: boolean;
}

/** Whether keys that a server has lost may be put back by renewals. */
export const putsBack = ({ lineMode, options }: ServerFacts): boolean =>
  lineMode === 'quorum' || options.restartGuard !== undefined;

/**
 * What a server can be asked for: a script, and the only place that knows the order of its keys, arguments and replies. The keys of one
 * request are in one slot.
 */
export interface Verb<Request, Answer> extends Script {
  encode(request: Request, server: ServerFacts): ScriptCall;
  /**
   * Never throws. `undefined`: the script cannot have sent this. Inside a MULTI of other code, for instance, every reply is `QUEUED`.
   *
   * @param shortfall the answer instead, if the script has written what too few replicas have
   */
  decode(
    reply: unknown,
    request: Request,
    server: ServerFacts,
    shortfall?: Unavailable,
  ): Answer | undefined;
}

export const script = (lua: string, operation = 'other'): Script => ({
  operation,
  lua,
  sha: createHash('sha1').update(lua).digest('hex'),
});

/**
 * The parts of a call, as an array to which more can be pushed. It is no literal, because V8 observes how long the
 * arrays of a literal live. These live until a reply, and V8 would soon create them in a part of the heap that only a
 * full garbage collection cleans. What `concat` makes is not observed.
 */
export const partsOf = <First extends string | number>(
  first: First,
  others: readonly (string | number)[] = [],
): [First, ...(string | number)[]] =>
  ([first] as (string | number)[]).concat(others) as [First, ...(string | number)[]];

/**
 * Begins a call with the names of the keys: main, fence, queue, holders, limit of each; with a guard also its epoch key, last. Arguments
 * are pushed to it: with a thousand keys nothing is copied twice.
 */
export function callOn(
  keys: readonly string[],
  { names }: ServerFacts,
  epoch?: string,
): [number, ...(string | number)[]] {
  const call = partsOf(keys.length * 5);
  for (const key of keys) {
    const { main, fence, queue, holders, limit } = names(key);
    call.push(main, fence, queue, holders, limit);
  }
  if (epoch === undefined) return call;
  call[0] += 1;
  call.push(epoch);
  return call;
}

/** Without the arguments that are missing at the end. */
export function trimmed(call: [number, ...(string | number)[]]): ScriptCall {
  while (call.at(-1) === '') call.pop();
  return call;
}

/** An argument that may be missing. */
export const orEmpty = (value: number | undefined): number | '' => value ?? '';

/** A server takes no proposal that is further ahead of its clock, in µs: as in `lua/includes/proposal-bound.lua`. */
export const PROPOSAL_BOUND_US = 1_000_000;

/** A line of this form stands for a file of `includes/`. A script includes each file once. */
const INCLUDE = /^-- @include (\S+)\n/gm;

/** The text of a file in `lua/`, with all that it includes. */
export function luaText(file: string): string {
  const included = new Set<string>();
  const read = (path: string): string =>
    luaFile(path).replace(INCLUDE, (_line, name: string) => {
      if (included.has(name)) return '';
      included.add(name);
      return read(`includes/${name}`);
    });
  return read(file);
}

/**
 * Turns count on from a token that is ahead of the clock by at most this, in µs. The shortest TTL is longer: when the lease of a
 * holder that died is over, the clock is past all of its turns.
 */
const AHEAD_OF_TURNS_US = 20_000;

/** Whether turns may count on from a token that was granted when the clock showed this. */
export const isFromClock = (token: number, clockUs: number): boolean =>
  token - clockUs <= AHEAD_OF_TURNS_US;

/** The token of a grant whose fence is behind the clock: the clock, or a proposal that is ahead of it by no more than the bound. */
export const tokenOf = (clockUs: number, proposal: number): number =>
  proposal > clockUs && proposal - clockUs <= PROPOSAL_BOUND_US ? proposal : clockUs;

/**
 * A count in a reply. A server that lies must not make us count with NaN. Clients make doubles of larger integers, and neighbours
 * become equal.
 */
export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;

/**
 * A PTTL. It is negative for a key without a TTL, and for a key that is gone. Other software may give a key one that is
 * larger than any count.
 */
export const isPttl = (value: unknown): value is number => Number.isInteger(value);

/** The ticket of a place in line, if that is one. */
export function ticketOf(text: unknown): number | undefined {
  const ticket = typeof text === 'string' && text !== '' ? Number(text) : NaN;
  return Number.isFinite(ticket) ? ticket : undefined;
}
