import type { Cluster, Redis } from 'ioredis';
import type { NodeFailure } from '../../errors.js';
import { Agenda, SLOT_MS } from '../../time/agenda.js';
import { systemClock } from '../../time/clock.js';
import type { Unavailable } from '../lock-store.js';
import type { RedisSource } from './redis-source.js';
import type { Script } from './scripts/script.js';

export type Reply = { readonly status: 'answered'; readonly value: unknown } | Unavailable;

/** Answers of a server that is busy with something that passes (Redis' own error codes; before Redis 7 a script's come behind a dash). */
const PASSING =
  /(^|: -)(LOADING|TRYAGAIN|MOVED|ASK|CLUSTERDOWN|READONLY|MASTERDOWN|NOREPLICAS|BUSY)\b/;

/** A connection that has owed an answer for so long is dead, whatever TCP thinks; the next one may lead to another master. */
const LONGEST_SILENCE_MS = 5_000;

/** How many requests of one moment go out in one packet. */
const MOST_GATHERED = 16;

/** Our connection for commands: runs scripts, each within a time limit, and names what went wrong. */
export class RedisConnection {
  readonly client: Redis | Cluster;
  readonly #source: RedisSource;
  #whenReady: Promise<void> | undefined;
  /** Why the connection is not there; `undefined` while nothing has failed since it was there last. */
  #lastError: string | undefined;
  /** What the log was told last: an outage is said once, and its end. */
  #state: 'new' | 'there' | 'gone' | 'closed' = 'new';
  /** When the first request of those was made that have had no answer; `undefined` while there are answers. */
  #silentSince: number | undefined;
  /** Requests of this moment that have not gone out. */
  #gathered = 0;
  /** Of all requests: one timer. */
  readonly #timeLimits = new Agenda(systemClock);

  /**
   * @param onLost told that the connection is gone, once for each time
   * @param onThere told that it is there, and whether it was lost before
   */
  constructor(source: RedisSource, onLost: () => void, onThere: (wasLost: boolean) => void) {
    this.#source = source;
    this.client = source.connect();
    this.client.on('error', (error: Error) => {
      this.#lastError = source.redact(error.message);
    });
    this.client.on('ready', () => {
      this.#lastError = undefined;
      this.#silentSince = undefined;
      const wasGone = this.#state === 'gone';
      if (this.#state === 'closed') return;
      this.#state = 'there';
      onThere(wasGone);
    });
    this.client.on('close', () => {
      if (this.#state !== 'there') return;
      this.#state = 'gone';
      onLost();
    });
  }

  get isThere(): boolean {
    return this.#state === 'there';
  }

  /** It owes an answer whose time is up, and has given none since: the next one may take as long. */
  get isSilent(): boolean {
    return this.#silentSince !== undefined;
  }

  run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    timeLimitMs: number,
  ): Promise<Reply> {
    const startedAt = performance.now();
    const { client } = this;
    return this.ask(timeLimitMs, () =>
      client.evalsha(script.sha, keys.length, ...keys, ...args).catch((error: unknown) => {
        // Nobody waits for it after its time: sent now, it would come after its own clean-up.
        const tooLate = performance.now() - startedAt >= timeLimitMs;
        if (tooLate || !messageOf(error).startsWith('NOSCRIPT')) throw error;
        return client.eval(script.lua, keys.length, ...keys, ...args);
      }),
    );
  }

  /** Any request, within a time limit. Never rejects. */
  ask(timeLimitMs: number, request: (connection: this) => Promise<unknown>): Promise<Reply> {
    const startedAt = performance.now();
    if (this.#state === 'closed')
      return Promise.resolve({ ...this.failure('connection', 'is closed'), sent: false });
    return this.client.status === 'ready'
      ? this.#ask(startedAt, timeLimitMs, request)
      : this.#askWhenReady(startedAt, timeLimitMs, request);
  }

  /** An answer that was not what the script gives. */
  malformed(value: unknown): Unavailable {
    return this.failure('error', `unexpected answer ${JSON.stringify(value)}`, false);
  }

  close(): void {
    this.#state = 'closed';
    this.#timeLimits.clear();
    this.client.disconnect();
  }

  async #askWhenReady(
    startedAt: number,
    timeLimitMs: number,
    request: (connection: this) => Promise<unknown>,
  ): Promise<Reply> {
    const isInTime = await new Promise<boolean>((resolve) => {
      const limit = this.#timeLimits.schedule(timeLimitMs + SLOT_MS, () => {
        resolve(false);
      });
      void this.#connected().then(() => {
        limit.cancel();
        resolve(true);
      });
    });
    if (!isInTime) this.#heardNothing(startedAt);
    else if (this.client.status === 'ready') return this.#ask(startedAt, timeLimitMs, request);
    const problem = this.#lastError ?? `not connected within ${String(timeLimitMs)} ms`;
    return { ...this.#notConnected(problem), sent: false };
  }

  #ask(
    startedAt: number,
    timeLimitMs: number,
    request: (connection: this) => Promise<unknown>,
  ): Promise<Reply> {
    this.#gather();
    let answer: Promise<unknown>;
    try {
      answer = request(this);
    } catch (error) {
      // The request cannot be sent, and a second try would not change that: it has too many arguments, for instance.
      return Promise.resolve(
        this.failure('error', `could not be sent: ${messageOf(error)}`, false),
      );
    }
    return new Promise((resolve) => {
      const leftMs = startedAt + timeLimitMs - performance.now();
      const limit = this.#timeLimits.schedule(leftMs + SLOT_MS, () => {
        this.#heardNothing(startedAt);
        resolve(this.failure('timeout', `no answer within ${String(timeLimitMs)} ms`));
      });
      // Late answers are heard, too.
      answer.then(
        (value) => {
          limit.cancel();
          this.#silentSince = undefined;
          resolve({ status: 'answered', value });
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
    if (isReply(error)) return this.failure('error', message, PASSING.test(message));
    const broken = error instanceof Error && error.name === 'MaxRetriesPerRequestError'; // the client's word for it, with a number that is ours
    return this.failure('connection', broken ? CLOSED : message);
  }

  /** Until ready, or until a try to connect has failed. */
  #connected(): Promise<void> {
    const { client } = this;
    if (client.status === 'wait') client.connect().catch(() => undefined); // told by the 'error' event
    if (client.status === 'end' || this.#lastError !== undefined) return Promise.resolve();
    this.#whenReady ??= new Promise((resolve) => {
      const done = (): void => {
        client.off('ready', done);
        client.off('error', done);
        client.off('end', done);
        this.#whenReady = undefined;
        resolve();
      };
      client.once('ready', done);
      client.once('error', done);
      client.once('end', done);
    });
    return this.#whenReady;
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

  #heardNothing(since: number): void {
    const { client } = this;
    this.#silentSince ??= since;
    if (client.isCluster) {
      // The node that hangs may have been replaced; the others know.
      if (client.status === 'ready') (client as Cluster).refreshSlotsCache();
      return;
    }
    if (performance.now() - this.#silentSince < LONGEST_SILENCE_MS) return;
    this.#silentSince = performance.now();
    // While it connects, ioredis has time limits of its own.
    if (client.status === 'ready' || client.status === 'connect') client.disconnect(true);
  }

  #notConnected(problem: string): Unavailable {
    // It is there, and will not let us in until somebody changes a password.
    const isRefused = /WRONGPASS|NOAUTH|invalid password/.test(problem);
    return isRefused ? this.failure('error', problem, false) : this.failure('connection', problem);
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

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** The server said no, as opposed to: the connection failed. */
const isReply = (error: unknown): boolean => error instanceof Error && error.name === 'ReplyError';

/** The server said no, and will until somebody changes a setting. */
export const isRefusal = (error: unknown): boolean =>
  isReply(error) && !PASSING.test(messageOf(error));

const CLOSED = 'the connection closed before the answer came';
