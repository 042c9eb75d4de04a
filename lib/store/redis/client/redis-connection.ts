import { inspect } from 'node:util';
import type { Scheduler } from '../../../time/scheduler.js';
import { TimeLimit } from '../../../time/time-limit.js';
import { REQUEST } from '../../../observe/channels.js';
import type { RequestContext } from '../../../observe/contexts.js';
import { traced } from '../../../observe/traced.js';
import type { Unavailable } from '../../lock-store.js';
import type { Script, ScriptCall } from '../scripts/script.js';
import { Readiness, type ConnectionOptions, type Fail, type WhileDown } from './readiness.js';
import type { RedisClient, RedisSource } from './redis-client.js';
import {
  CLOSED,
  isBroken,
  isElsewhere,
  isPassing,
  isReply,
  messageOf,
  NODE_OF_A_CLUSTER,
  withForeignKeys,
} from './reply-errors.js';
import { LONGEST_SILENCE_MS, SilentMasters } from './silent-masters.js';

export type Reply = { readonly status: 'answered'; readonly value: unknown } | Unavailable;

/** A class, because V8 keeps the objects of a literal for too long (see `partsOf`). */
class Answered {
  readonly status = 'answered';
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

/** A server may answer anything, of any size. */
const ON_ONE_LINE = { depth: 2, maxArrayLength: 8, maxStringLength: 80, breakLength: Infinity };

/** What a request is for. What counts as the node's vote is refused while the node is set aside. */
type Purpose = 'vote' | 'look';

/** Sends a request. `limit` tells whether its reply is still waited for. */
type Send = (connection: RedisConnection, limit: TimeLimit) => Promise<unknown>;

/** The call of a request that is no script. */
const NO_CALL: ScriptCall = [0];

/** The keys of a script. */
export const keysOf = ([keyCount, ...keysAndArguments]: ScriptCall): readonly unknown[] =>
  keysAndArguments.slice(0, keyCount);

/** A request and what it is worth waiting for. */
interface Pending {
  /** A script is sent by its name, and as a whole where the server does not know it. */
  readonly what: Send | Script;
  readonly call: ScriptCall;
  readonly purpose: Purpose;
  readonly timeLimitMs: number;
  readonly limit: TimeLimit;
  readonly whileDown: WhileDown;
}

/** Our connection for commands: runs scripts, each within a time limit, and names what went wrong. */
export class RedisConnection {
  readonly client: RedisClient;
  /** Names this node. */
  readonly failure: Fail;
  readonly #node: string;
  readonly #readiness: Readiness;
  /** For the time limits of all requests. */
  readonly #scheduler: Scheduler;
  readonly #silentMasters: SilentMasters;
  /** Why the node has no vote. */
  #aside: Unavailable | undefined;
  /** How many requests are waited for: for votes, and for a usable connection. */
  #onTheirWay = 0;
  /** When the first request of those was made that have had no answer; `undefined` while there are answers. */
  #silentSince: number | undefined;

  constructor(source: RedisSource, scheduler: Scheduler, options: ConnectionOptions) {
    this.#scheduler = scheduler;
    this.#silentMasters = new SilentMasters(scheduler);
    this.#node = source.name;
    this.#readiness = new Readiness(source, options, () => {
      this.#silentSince = undefined;
    });
    this.client = this.#readiness.client;
    this.failure = this.#readiness.fail;
  }

  get isThere(): boolean {
    return this.#readiness.isThere;
  }

  /** The server owes an answer whose time is up, and has given none since: the next one may take as long. */
  get isSilent(): boolean {
    return this.#silentSince !== undefined;
  }

  /** The server replies and refuses the connection; its owner was notified of the reason. */
  get isRefused(): boolean {
    return this.#readiness.isRefused;
  }

  /** @param why the node has no vote; `undefined` where it has one */
  setAside(why: string | undefined): void {
    this.#aside = why === undefined ? undefined : this.failure('error', why, 'for good');
  }

  /** Whether a request is on its way, or will be as soon as the connection is usable. */
  get isBusy(): boolean {
    return this.#onTheirWay > 0;
  }

  /** Runs a script. Never rejects. */
  run(
    script: Script,
    call: ScriptCall,
    timeLimitMs: number,
    whileDown?: WhileDown,
  ): Promise<Reply> {
    if (!REQUEST.hasSubscribers) return this.#request('vote', timeLimitMs, script, whileDown, call);
    const clock = this.#scheduler.runtime;
    const context: RequestContext = { operation: script.operation, node: this.#node };
    const since = clock.now().monotonicMs;
    return traced(REQUEST, context, async () => {
      const reply = await this.#request('vote', timeLimitMs, script, whileDown, call);
      context.durationMs = clock.now().monotonicMs - since;
      context.outcome =
        reply.status === 'answered' ? 'answered' : (reply.nodes[0]?.kind ?? 'connection');
      return reply;
    });
  }

  /** Any request that counts as the node's vote, within a time limit. Never rejects. */
  ask(timeLimitMs: number, send: Send, whileDown?: WhileDown): Promise<Reply> {
    return this.#request('vote', timeLimitMs, send, whileDown);
  }

  /** As `ask`, of a node that may have no vote: how it is, and what reaches it. */
  look(timeLimitMs: number, send: Send): Promise<Reply> {
    return this.#request('look', timeLimitMs, send);
  }

  /** An answer that was not what the script gives. */
  malformed(reply: unknown): Unavailable {
    return this.failure('error', `unexpected answer ${inspect(reply, ON_ONE_LINE)}`, 'for good');
  }

  close(): void {
    this.#readiness.close();
  }

  #request(
    purpose: Purpose,
    timeLimitMs: number,
    what: Send | Script,
    whileDown: WhileDown = 'fails',
    call = NO_CALL,
  ): Promise<Reply> {
    const { isUsable, isClosed } = this.#readiness;
    if (!isUsable && isClosed)
      return Promise.resolve({ ...this.failure('connection', 'is closed'), sent: false });
    const limit = new TimeLimit(this.#scheduler, timeLimitMs);
    const pending = { what, call, purpose, timeLimitMs, limit, whileDown };
    return isUsable ? this.#send(pending) : this.#sendWhenUsable(pending);
  }

  async #sendWhenUsable(pending: Pending): Promise<Reply> {
    const readiness = this.#readiness;
    const { limit, timeLimitMs, whileDown } = pending;
    // What is asked for meanwhile can be sent together.
    this.#onTheirWay += 1;
    const isInTime = await new Promise<boolean>((resolve) => {
      limit.onOver = () => {
        resolve(false);
      };
      void readiness.becomesUsable(whileDown).then(() => {
        resolve(true);
      });
    });
    this.#onTheirWay -= 1;
    if (isInTime && readiness.isUsable) return this.#send(pending);
    limit.cancel();
    if (!isInTime && !readiness.hasFailed) this.#heardNothing(timeLimitMs);
    const problem = readiness.problem(isInTime ? 'in time' : 'too late', timeLimitMs);
    return { ...problem, sent: false };
  }

  #send({ what, call, purpose, timeLimitMs, limit }: Pending): Promise<Reply> {
    const isVote = purpose === 'vote';
    if (isVote && this.#aside !== undefined) {
      limit.cancel();
      return Promise.resolve({ ...this.#aside, sent: false });
    }
    let answer: Promise<unknown>;
    try {
      answer =
        typeof what === 'function'
          ? what(this, limit)
          : this.client.evalsha(what.sha, call, !this.isBusy);
    } catch (error) {
      limit.cancel();
      // The request cannot be sent, and a second try would not change that: it has too many arguments, for instance.
      const problem = `could not be sent: ${messageOf(error)}`;
      return Promise.resolve(this.failure('error', problem, 'for good'));
    }
    if (isVote) this.#onTheirWay += 1;
    return new Promise((resolve) => {
      let isWaitedFor = true;
      const settle = (reply: Reply): void => {
        if (!isWaitedFor) return;
        isWaitedFor = false;
        if (isVote) this.#onTheirWay -= 1;
        limit.cancel();
        resolve(reply);
      };
      limit.onOver = () => {
        this.#heardNothing(timeLimitMs);
        settle(this.failure('timeout', `no answer within ${String(timeLimitMs)} ms`));
      };
      // Late answers are heard, too.
      const arrived = (value: unknown): void => {
        this.#silentSince = undefined;
        // The node may have been set aside while the request was on its way.
        settle((isVote ? this.#aside : undefined) ?? new Answered(value));
      };
      const refused = (error: unknown): void => {
        if (isReply(error)) this.#silentSince = undefined;
        // The node of a Cluster that is gone may have been replaced; the others know.
        else this.client.refreshSlots();
        settle(this.failed(error, keysOf(call)));
      };
      answer.then(arrived, (error: unknown) => {
        const isUnknown = typeof what === 'object' && messageOf(error).startsWith('NOSCRIPT');
        // No caller waits for it after its time. Sent then, it would arrive after its own clean-up.
        if (!isUnknown || limit.isOver) refused(error);
        else void this.#sendWhole(what, call).then(arrived, refused);
      });
    });
  }

  /** Async, because a client may throw. */
  async #sendWhole({ lua }: Script, call: ScriptCall): Promise<unknown> {
    return this.client.command('eval', lua, ...call);
  }

  /**
   * What an error means.
   *
   * @param keys those of the request: other software may have written to them
   */
  failed(error: unknown, keys: readonly unknown[] = []): Unavailable {
    const message = messageOf(error);
    if (!isReply(error)) return this.failure('connection', isBroken(error) ? CLOSED : message);
    if (this.client.kind === 'single' && isElsewhere(message))
      return this.failure('error', `${message} (it ${NODE_OF_A_CLUSTER})`, 'for good');
    const howLong = isPassing(error) ? 'for a moment' : 'for good';
    return this.failure('error', withForeignKeys(message, keys), howLong);
  }

  #heardNothing(timeLimitMs: number): void {
    const now = this.#scheduler.runtime.now().monotonicMs;
    this.#silentSince ??= now - timeLimitMs;
    if (this.client.kind === 'cluster') {
      // The node that hangs may have been replaced; the others know.
      this.client.refreshSlots();
      this.#silentMasters.suspect(this.client.masters(), timeLimitMs);
      return;
    }
    if (now - this.#silentSince < LONGEST_SILENCE_MS) return;
    this.#silentSince = now;
    this.client.reconnect?.();
  }
}
