import type { Cluster, Redis } from 'ioredis';
import type { NodeFailure } from '../../errors.js';
import type { Unavailable } from '../lock-store.js';
import type { RedisSource } from './redis-source.js';
import type { Script } from './scripts/script.js';

export type Reply = { readonly status: 'answered'; readonly value: unknown } | Unavailable;

/** Answers of a server that is busy with something that passes (Redis' own error codes; before Redis 7 a script's come behind a dash). */
const PASSING = /(^|: -)(LOADING|TRYAGAIN|CLUSTERDOWN|READONLY|MASTERDOWN|NOREPLICAS|BUSY)\b/;

/** A connection that has owed an answer for so long is dead, whatever TCP thinks; the next one may lead to another master. */
const LONGEST_SILENCE_MS = 5_000;

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

  constructor(source: RedisSource, warn: (message: string) => void) {
    this.#source = source;
    this.client = source.connect();
    this.client.on('error', (error: Error) => {
      this.#lastError = source.redact(error.message);
    });
    this.client.on('ready', () => {
      this.#lastError = undefined;
      if (this.#state === 'gone') warn(`Redis at ${source.name} is back: locks are granted again.`);
      if (this.#state !== 'closed') this.#state = 'there';
    });
    this.client.on('close', () => {
      if (this.#state !== 'there') return;
      this.#state = 'gone';
      warn(
        `The connection to Redis at ${source.name} was lost. Locks are refused (503) until it is back.`,
      );
    });
  }

  run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    timeLimitMs: number,
  ): Promise<Reply> {
    const startedAt = performance.now();
    return this.ask(timeLimitMs, async ({ client }) => {
      try {
        return await client.evalsha(script.sha, keys.length, ...keys, ...args);
      } catch (error) {
        // Nobody waits for it after its time: sent now, it would come after its own clean-up.
        const tooLate = performance.now() - startedAt >= timeLimitMs;
        if (tooLate || !messageOf(error).startsWith('NOSCRIPT')) throw error;
        return await client.eval(script.lua, keys.length, ...keys, ...args);
      }
    });
  }

  /** Any request, within a time limit. Never rejects. */
  async ask(timeLimitMs: number, request: (connection: this) => Promise<unknown>): Promise<Reply> {
    const startedAt = performance.now();
    const timer = new TimeLimit(timeLimitMs);
    try {
      const ready = this.client.status === 'ready' || (await timer.race(this.#connected()));
      if (ready === TIME_IS_UP) {
        this.#heardNothing(startedAt);
        const problem = this.#lastError ?? `not connected within ${String(timeLimitMs)} ms`;
        return { ...this.#failure('connection', problem), sent: false };
      }
      if (this.#lastError !== undefined && this.client.status !== 'ready')
        return { ...this.#failure('connection', this.#lastError), sent: false };
      const value = await timer.race(request(this));
      if (value === TIME_IS_UP) {
        this.#heardNothing(startedAt);
        return this.#failure('timeout', `no answer within ${String(timeLimitMs)} ms`);
      }
      this.#silentSince = undefined;
      return { status: 'answered', value };
    } catch (error) {
      const message = messageOf(error);
      const kind = error instanceof Error ? error.name : '';
      if (kind === 'ReplyError') return this.#failure('error', message, PASSING.test(message));
      const broken = kind === 'MaxRetriesPerRequestError'; // the client's word for it, with a number that is ours
      return this.#failure('connection', broken ? CLOSED : message);
    } finally {
      timer.clear();
    }
  }

  /** An answer that was not what the script gives. */
  malformed(value: unknown): Unavailable {
    return this.#failure('error', `unexpected answer ${JSON.stringify(value)}`, false);
  }

  close(): void {
    this.#state = 'closed';
    this.client.disconnect();
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

  #heardNothing(since: number): void {
    const { client } = this;
    if (client.isCluster) {
      // The node that hangs may have been replaced; the others know.
      if (client.status === 'ready') (client as Cluster).refreshSlotsCache();
      return;
    }
    this.#silentSince ??= since;
    if (performance.now() - this.#silentSince < LONGEST_SILENCE_MS) return;
    this.#silentSince = undefined;
    // While it connects, ioredis has time limits of its own.
    if (client.status === 'ready' || client.status === 'connect') client.disconnect(true);
  }

  #failure(kind: NodeFailure['kind'], message: string, transient = true): Unavailable {
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

const CLOSED = 'the connection closed before the answer came';

const TIME_IS_UP = Symbol('time is up');

/** One timer over several steps. */
class TimeLimit {
  readonly #over: Promise<typeof TIME_IS_UP>;
  #timer: NodeJS.Timeout | undefined;

  constructor(ms: number) {
    this.#over = new Promise((resolve) => {
      this.#timer = setTimeout(resolve, ms, TIME_IS_UP);
    });
  }

  race<T>(step: Promise<T>): Promise<T | typeof TIME_IS_UP> {
    return Promise.race([step, this.#over]);
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}
