import type { Cluster, Redis } from 'ioredis';
import type { NodeFailure } from '../../../errors.js';
import type { Scheduler } from '../../../time/scheduler.js';
import { TimeLimit } from '../../../time/time-limit.js';
import type { Unavailable } from '../../lock-store.js';
import type { RedisSource } from './redis-source.js';
import { isLoginRefusal, isPassing, isReply, messageOf } from './reply-errors.js';
import type { Script, ScriptCall } from '../scripts/script.js';
import { tlsHint } from './tls-hint.js';
import { DatabaseRefusal, verifyConnection, type Verification } from './verify-connection.js';

export type Reply = { readonly status: 'answered'; readonly value: unknown } | Unavailable;

/** A connection that has owed an answer for so long is dead, whatever TCP thinks; the next one may lead to another master. */
const LONGEST_SILENCE_MS = 5_000;

/** How many requests of one moment go out in one packet. */
const MOST_GATHERED = 16;

/** What the owner of a connection is told of it. */
export interface ConnectionEvents {
  /** It is gone; once for each time. */
  readonly onLost: () => void;
  /**
   * It is verified. Called before any request goes over it.
   *
   * @param run the id of the server's present run, if that was read
   */
  readonly onThere: (run: string | undefined) => void;
  /** The server answers, and will not let us use it until somebody changes a setting; once for each time that it was lost. */
  readonly onRefused: (problem: string) => void;
}

export interface ConnectionOptions extends ConnectionEvents {
  readonly scheduler: Scheduler;
  /** Whether the server has to be told from others before it is used. */
  readonly readsRun: boolean;
}

/** What a request is for. What counts as the node's vote is refused while the node is set aside. */
type Purpose = 'vote' | 'look';

/**
 * What a request does while the connection is down. `'fails'`: as soon as a try to connect has failed; its caller tries again, or has
 * something better to do. `'waits'`: it goes out when the connection is back, within its time limit. It is never sent twice.
 */
export type WhileDown = 'fails' | 'waits';

/** @param limit tells whether the request is still waited for */
type Request = (connection: RedisConnection, limit: TimeLimit) => Promise<unknown>;

/** A request and what it is worth waiting for. */
interface Pending {
  readonly request: Request;
  readonly purpose: Purpose;
  readonly timeLimitMs: number;
  readonly limit: TimeLimit;
  readonly whileDown: WhileDown;
}

/** Our connection for commands: runs scripts, each within a time limit, and names what went wrong. */
export class RedisConnection {
  readonly client: Redis | Cluster;
  readonly #source: RedisSource;
  readonly #verification: Verification;
  readonly #events: ConnectionEvents;
  readonly #whenReady = new Map<WhileDown, Promise<void>>();
  /** Under way. */
  #verifying: Promise<void> | undefined;
  /** Why the connection is not there; `undefined` while nothing has failed since it was there last. */
  #lastError: string | undefined;
  /** Why the server that is there is not used; `undefined` while it is not there or was not asked. */
  #refusal: Unavailable | undefined;
  /** Why the node has no vote. */
  #aside: Unavailable | undefined;
  /** `there`: verified. An outage is said once, and its end. */
  #state: 'new' | 'there' | 'gone' | 'closed' = 'new';
  #refusalWasSaid = false;
  /** When the first request of those was made that have had no answer; `undefined` while there are answers. */
  #silentSince: number | undefined;
  /** Requests of this moment that have not gone out. */
  #gathered = 0;
  /** For the time limits of all requests. */
  readonly #scheduler: Scheduler;

  constructor(source: RedisSource, { scheduler, readsRun, ...events }: ConnectionOptions) {
    this.#scheduler = scheduler;
    this.#source = source;
    this.#verification = { database: source.database, readsRun };
    this.#events = events;
    this.client = source.connect();
    this.client.on('error', (error: Error) => {
      if (!isOfSelect(error)) this.#lastError = source.redact(error.message);
    });
    this.client.on('ready', () => {
      this.#lastError = undefined;
      void this.#verify();
    });
    this.client.on('close', () => {
      this.#refusal = undefined;
      if (this.#state !== 'there') return;
      this.#state = 'gone';
      events.onLost();
    });
  }

  get isThere(): boolean {
    return this.#state === 'there';
  }

  /** It owes an answer whose time is up, and has given none since: the next one may take as long. */
  get isSilent(): boolean {
    return this.#silentSince !== undefined;
  }

  /** The server answers, and will not let us use it; its owner was told why. */
  get isRefused(): boolean {
    return this.#refusalWasSaid;
  }

  /** @param why the node has no vote; `undefined` where it has one */
  setAside(why: string | undefined): void {
    this.#aside = why === undefined ? undefined : this.failure('error', why, false);
  }

  run(
    script: Script,
    call: ScriptCall,
    timeLimitMs: number,
    whileDown?: WhileDown,
  ): Promise<Reply> {
    return this.ask(
      timeLimitMs,
      ({ client }, limit) =>
        client.evalsha(script.sha, ...call).catch((error: unknown) => {
          // Nobody waits for it after its time: sent now, it would come after its own clean-up.
          if (limit.isOver || !messageOf(error).startsWith('NOSCRIPT')) throw error;
          return client.eval(script.lua, ...call);
        }),
      whileDown,
    );
  }

  /** Any request that counts as the node's vote, within a time limit. Never rejects. */
  ask(timeLimitMs: number, request: Request, whileDown?: WhileDown): Promise<Reply> {
    return this.#request('vote', timeLimitMs, request, whileDown);
  }

  /** As `ask`, of a node that may have no vote: how it is, and what reaches it. */
  look(timeLimitMs: number, request: Request): Promise<Reply> {
    return this.#request('look', timeLimitMs, request);
  }

  /** An answer that was not what the script gives. */
  malformed(value: unknown): Unavailable {
    return this.failure('error', `unexpected answer ${JSON.stringify(value)}`, false);
  }

  close(): void {
    this.#state = 'closed';
    this.client.disconnect();
  }

  #request(
    purpose: Purpose,
    timeLimitMs: number,
    request: Request,
    whileDown: WhileDown = 'fails',
  ): Promise<Reply> {
    if (this.#state === 'closed')
      return Promise.resolve({ ...this.failure('connection', 'is closed'), sent: false });
    const limit = new TimeLimit(this.#scheduler, timeLimitMs);
    const pending = { request, purpose, timeLimitMs, limit, whileDown };
    return this.#isUsable ? this.#send(pending) : this.#sendWhenUsable(pending);
  }

  /** Ready is not enough: it has to be verified, too. */
  get #isUsable(): boolean {
    return this.#state === 'there' && this.client.status === 'ready';
  }

  async #sendWhenUsable(pending: Pending): Promise<Reply> {
    const { limit, timeLimitMs, whileDown } = pending;
    const isInTime = await new Promise<boolean>((resolve) => {
      limit.onOver = () => {
        resolve(false);
      };
      void this.#becomesUsable(whileDown).then(() => {
        resolve(true);
      });
    });
    if (isInTime && this.#isUsable) return this.#send(pending);
    limit.cancel();
    if (!isInTime && this.#lastError === undefined) this.#heardNothing(timeLimitMs);
    return { ...this.#notUsable(isInTime, timeLimitMs), sent: false };
  }

  #send({ request, purpose, timeLimitMs, limit }: Pending): Promise<Reply> {
    if (purpose === 'vote' && this.#aside !== undefined) {
      limit.cancel();
      return Promise.resolve({ ...this.#aside, sent: false });
    }
    this.#gather();
    let answer: Promise<unknown>;
    try {
      answer = request(this, limit);
    } catch (error) {
      limit.cancel();
      // The request cannot be sent, and a second try would not change that: it has too many arguments, for instance.
      return Promise.resolve(
        this.failure('error', `could not be sent: ${messageOf(error)}`, false),
      );
    }
    return new Promise((resolve) => {
      limit.onOver = () => {
        this.#heardNothing(timeLimitMs);
        resolve(this.failure('timeout', `no answer within ${String(timeLimitMs)} ms`));
      };
      // Late answers are heard, too.
      answer.then(
        (value) => {
          limit.cancel();
          this.#silentSince = undefined;
          // It may have been set aside while the request was on its way.
          const aside = purpose === 'vote' ? this.#aside : undefined;
          resolve(aside ?? { status: 'answered', value });
        },
        (error: unknown) => {
          limit.cancel();
          if (isReply(error)) this.#silentSince = undefined;
          resolve(this.#failed(error));
        },
      );
    });
  }

  #failed(error: unknown): Unavailable {
    const message = messageOf(error);
    if (isReply(error)) return this.failure('error', message, isPassing(error));
    const broken = error instanceof Error && error.name === 'MaxRetriesPerRequestError'; // the client's word for it, with a number that is ours
    return this.failure('connection', broken ? CLOSED : message);
  }

  /** Until it is usable, or a try to make it so has failed. */
  async #becomesUsable(whileDown: WhileDown): Promise<void> {
    await this.#connected(whileDown);
    if (this.client.status === 'ready' && this.#state !== 'there') await this.#verify();
  }

  /** Until ready, or until a try to connect has failed: any, or for those who wait one that will fail until a setting is changed. */
  #connected(whileDown: WhileDown): Promise<void> {
    const { client } = this;
    if (client.status === 'wait') client.connect().catch(() => undefined); // told by the 'error' event
    const ends = (message: string): boolean => whileDown === 'fails' || isLoginRefusal(message);
    if (client.status === 'ready' || client.status === 'end') return Promise.resolve();
    if (this.#lastError !== undefined && ends(this.#lastError)) return Promise.resolve();
    const waiting = this.#whenReady.get(whileDown);
    if (waiting !== undefined) return waiting;
    const whenReady = new Promise<void>((resolve) => {
      const done = (): void => {
        client.off('ready', done);
        client.off('error', failed);
        client.off('end', done);
        this.#whenReady.delete(whileDown);
        resolve();
      };
      const failed = (error: Error): void => {
        if (!isOfSelect(error) && ends(error.message)) done();
      };
      client.on('ready', done);
      client.on('error', failed);
      client.on('end', done);
    });
    this.#whenReady.set(whileDown, whenReady);
    return whenReady;
  }

  /** Once for each connection, and again when somebody asks for anything after it has failed: a setting may have been changed. */
  #verify(): Promise<void> {
    this.#verifying ??= this.#tryVerifying().finally(() => {
      this.#verifying = undefined;
    });
    return this.#verifying;
  }

  /** Never rejects. Where nothing is to be asked, it is there when this returns. */
  async #tryVerifying(): Promise<void> {
    const { client } = this;
    const { database, readsRun } = this.#verification;
    let run: string | undefined;
    try {
      if (!client.isCluster && (database !== 0 || readsRun))
        run = await verifyConnection(client as Redis, this.#verification);
    } catch (error) {
      this.#refuse(error);
      return;
    }
    if (client.status !== 'ready' || this.#state === 'closed') return;
    this.#state = 'there';
    this.#refusal = undefined;
    this.#refusalWasSaid = false;
    this.#silentSince = undefined;
    this.#events.onThere(run);
  }

  #refuse(error: unknown): void {
    const isFinal = error instanceof DatabaseRefusal;
    if (!isFinal && !isReply(error)) return; // the connection broke, and that is told by its events
    this.#silentSince = undefined;
    const problem = messageOf(error);
    this.#refusal = this.failure('error', problem, !isFinal);
    if (!isFinal || this.#refusalWasSaid || this.#state === 'closed') return;
    this.#refusalWasSaid = true;
    this.#events.onRefused(this.#source.redact(problem));
  }

  /**
   * What is asked for in the same moment goes out together, but no more than the server can begin with while we go on: else the two take
   * turns, and each waits for the other.
   */
  #gather(): void {
    const { client } = this;
    if (client.isCluster) return;
    this.#gathered += 1;
    if (this.#gathered > 1 && this.#gathered <= MOST_GATHERED) return;
    const { stream } = client as Redis;
    if (this.#gathered > 1) {
      this.#gathered = 1;
      stream.uncork();
      stream.cork();
      return;
    }
    stream.cork();
    process.nextTick(() => {
      this.#gathered = 0;
      stream.uncork();
    });
  }

  #heardNothing(timeLimitMs: number): void {
    const { client } = this;
    const now = this.#scheduler.runtime.now().monotonicMs;
    this.#silentSince ??= now - timeLimitMs;
    if (client.isCluster) {
      // The node that hangs may have been replaced; the others know.
      if (client.status === 'ready') (client as Cluster).refreshSlotsCache();
      return;
    }
    if (now - this.#silentSince < LONGEST_SILENCE_MS) return;
    this.#silentSince = now;
    // While it connects, ioredis has time limits of its own.
    if (client.status === 'ready' || client.status === 'connect') client.disconnect(true);
  }

  #notUsable(isInTime: boolean, timeLimitMs: number): Unavailable {
    const limit = `${String(timeLimitMs)} ms`;
    if (this.client.status === 'ready')
      return this.#refusal ?? this.failure('timeout', `no answer within ${limit}`);
    const problem = this.#lastError ?? (isInTime ? CLOSED : `not connected within ${limit}`);
    // It is there, and will not let us in until somebody changes a password.
    if (isLoginRefusal(problem)) return this.failure('error', problem, false);
    const isNew = this.#state === 'new' && !this.client.isCluster;
    const hint = isNew ? tlsHint(this.client as Redis, problem) : '';
    return this.failure('connection', `${problem}${hint}`);
  }

  /** Names this node. */
  failure(kind: NodeFailure['kind'], message: string, transient = true): Unavailable {
    const node = this.#source.name;
    return {
      status: 'unavailable',
      nodes: [{ node, kind, message: this.#source.redact(message) }],
      transient,
    };
  }
}

/** ioredis selects a database by itself, reports the refusal as if the connection had failed, and goes on. We ask again. */
const isOfSelect = (error: Error & { readonly command?: { readonly name: string } }): boolean =>
  isReply(error) && error.command?.name === 'select';

const CLOSED = 'the connection closed before the answer came';
