import type {
  AttemptEnd,
  BeginOutcome,
  BeginRequest,
  FinishOutcome,
  OnceReference,
} from '../../once-store.js';
import { isCount, luaText, script, type ServerFacts, type Verb } from './script.js';

/** Both with their only key. */
export type BeginCall = Omit<BeginRequest, 'key' | 'fencingToken'> & {
  readonly keys: readonly string[];
};

export interface EndCall extends Omit<OnceReference, 'key' | 'fencingToken'> {
  readonly keys: readonly string[];
  readonly what: 'keep' | AttemptEnd;
  readonly attempt: number;
  /** The value or the error. */
  readonly text?: string | undefined;
  /** How long to remember it. */
  readonly lifeMs: number;
}

/**
 * All changes of the record of work that is to be done once. They are one script, so that a process which has begun an
 * attempt finds it loaded when it has to end it quickly.
 *
 * A running attempt belongs to its owner until another one begins, even if another caller holds the lock. Without a
 * record, because the server forgot it, the attempt belongs to the holder of the lock.
 *
 * Redis refuses a script's first write when its memory is full, and none after that. So a begin starts with HSET, which
 * is refused. An end starts with a write that is not refused: finished work must not be repeated because it could not
 * be marked.
 */
const ONCE = script(luaText('once'), 'once');

function namesOf([key = '']: readonly string[], { names }: ServerFacts): readonly [string, string] {
  const { main, once } = names(key);
  return [main, once];
}

export const beginScript: Verb<BeginCall, BeginOutcome> = {
  encode: ({ keys, token, owner, lifeMs, attempts, keepMs }, server) => [
    2,
    ...namesOf(keys, server),
    ...['begin', token, owner, lifeMs, attempts, keepMs],
  ],
  decode(reply, _request, _server, shortfall) {
    if (!Array.isArray(reply)) return undefined;
    const [result, attempts, detail] = reply as unknown[];
    if (!isCount(attempts)) return undefined;
    const text = typeof detail === 'string' && detail !== '' ? detail : undefined;
    if (result === 0) return { status: 'lost', attempts };
    if (result === 1) return shortfall ?? { status: 'begun', attempt: attempts };
    if (result === 2) return { status: 'done', attempts, value: text };
    return result === 3 ? { status: 'exhausted', attempts, error: text } : undefined;
  },
  ...ONCE,
};

export const endScript: Verb<EndCall, FinishOutcome> = {
  encode: ({ keys, token, owner, lifeMs, what, attempt, text = '' }, server) => [
    2,
    ...namesOf(keys, server),
    ...[what, token, owner, lifeMs, attempt, text],
  ],
  decode(reply, _request, _server, shortfall) {
    if (!Array.isArray(reply) || reply.length !== 1) return undefined;
    if (reply[0] === 1) return shortfall ?? { status: 'accepted' };
    return reply[0] === 0 ? { status: 'superseded' } : undefined;
  },
  ...ONCE,
};
