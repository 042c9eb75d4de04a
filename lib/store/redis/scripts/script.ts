import { createHash } from 'node:crypto';
import type { KeyNames } from './key-names.js';

/** A Lua script and the name Redis keeps it under. */
export interface Script {
  /** What it does, for telemetry. */
  readonly operation: string;
  readonly lua: string;
  readonly sha: string;
  /** The same for several requests in one call (`batch.ts`). */
  readonly batch?: Batch;
}

export type PlainReply = (value: number, clockUs: unknown) => unknown;

/** Runs another script for several requests. */
export interface Batch extends Script {
  /** The answer of the other script that a number stands for. */
  readonly plainReply: PlainReply;
}

/** A script that several requests can be given to in one call. */
export type BatchedScript = Script & { readonly batch: Batch };

/** What one run of a script is given, as EVAL takes it: the number of keys, the keys, the arguments. */
export type ScriptCall = readonly [keyCount: number, ...keysAndArguments: (string | number)[]];

/** A script, and the only place that knows the order of its keys, arguments and answers. */
export interface ScriptWithCodec<Request, Answer> extends Script {
  encode(request: Request): ScriptCall;
  /** Never throws: what is no answer of the script's is `malformed`. */
  decode(reply: unknown): Answer | Malformed;
}

/** A reply that the script cannot have sent. Inside a MULTI of other code, for instance, every reply is `QUEUED`. */
export interface Malformed {
  readonly status: 'malformed';
  /** The unexpected reply. */
  readonly reply: unknown;
}

export const malformed = (reply: unknown): Malformed => ({ status: 'malformed', reply });

export const script = (lua: string, operation = 'other'): Script => ({
  operation,
  lua,
  sha: createHash('sha1').update(lua).digest('hex'),
});

/** The names of keys of locks, as scripts want them: main, fence, queue, holders of each key; with a guard also its epoch key, last. */
export interface LockKeys {
  readonly names: readonly KeyNames[];
  readonly epoch?: string | undefined;
}

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

/** Begins a call with the names. Arguments are pushed to it: with a thousand keys nothing is copied twice. */
export function callOn({ names, epoch }: LockKeys): [number, ...(string | number)[]] {
  const call = partsOf(names.length * 4);
  for (const { main, fence, queue, holders } of names) call.push(main, fence, queue, holders);
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
