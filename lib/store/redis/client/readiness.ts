import type { NodeFailure } from '../../../errors.js';
import type { Unavailable } from '../../lock-store.js';
import type { RedisClient, RedisSource } from './redis-client.js';
import { CLOSED, isLoginRefusal, isReply, messageOf } from './reply-errors.js';
import { DatabaseRefusal, verifyConnection } from './verify-connection.js';

/**
 * What a request does while the connection is down. `'fails'`: as soon as a try to connect has failed; its caller tries again, or has
 * something better to do. `'waits'`: it goes out when the connection is back, within its time limit. It is never sent twice.
 */
export type WhileDown = 'fails' | 'waits';

/** What went wrong at a node, without secrets, and until when the same request fails: by itself, or until an operator changes a setting. */
export type Fail = (
  kind: NodeFailure['kind'],
  message: string,
  howLong?: 'for a moment' | 'for good',
) => Unavailable;

/** What a connection is for, and its events. */
export interface ConnectionOptions {
  /** Whether the server has to be distinguished from others before it is used. */
  readonly readsRun: boolean;
  /** The connection is gone; called once for each time. */
  readonly onLost: () => void;
  /**
   * The connection is verified. Called before any request goes over it.
   *
   * @param run the id of the server's present run, if that was read
   */
  readonly onThere: (run: string | undefined) => void;
  /**
   * The server replies, and refuses the connection until an operator changes a setting. Called once for each time that
   * it was lost.
   */
  readonly onRefused: (problem: string) => void;
  /** Slots of a Cluster may have another master than before. */
  readonly onSlots: () => void;
}

/** Whether a connection may be used: connected is not enough, it has to be verified, too. And why it may not. */
export class Readiness {
  readonly client: RedisClient;
  /** Names the node. */
  readonly fail: Fail;
  readonly #source: RedisSource;
  readonly #options: ConnectionOptions;
  readonly #onAnswer: () => void;
  readonly #waiting: Readonly<Record<WhileDown, (() => void)[]>> = { fails: [], waits: [] };
  /** Under way. */
  #verifying: Promise<void> | undefined;
  /** Why the connection is not there; `undefined` while nothing has failed since it was there last. */
  #lastError: string | undefined;
  /** Why the reachable server is not used; `undefined` while it is not reachable or was not asked. */
  #refusal: Unavailable | undefined;
  /** `there`: verified. An outage is said once, and its end. */
  #state: 'new' | 'there' | 'gone' | 'closed' = 'new';
  #refusalWasSaid = false;

  /** @param onAnswer called when the server has answered what it was asked to verify the connection */
  constructor(source: RedisSource, options: ConnectionOptions, onAnswer: () => void) {
    this.#source = source;
    this.#options = options;
    this.#onAnswer = onAnswer;
    this.fail = (kind, message, howLong = 'for a moment') => ({
      status: 'unavailable',
      nodes: [{ node: source.name, kind, message: source.redact(message) }],
      transient: howLong === 'for a moment',
    });
    this.client = source.connect({
      onError: (message) => {
        this.#lastError = source.redact(message);
        this.#wake('fails');
        if (isLoginRefusal(message)) this.#wake('waits');
      },
      onConnect: () => {
        // What went wrong with the try before says nothing of this one: if the server stays silent, that has to be noticed.
        this.#lastError = undefined;
      },
      onReady: () => {
        this.#lastError = undefined;
        void this.#verify();
        this.#wake('fails', 'waits');
      },
      onClose: () => {
        this.#refusal = undefined;
        if (this.#state !== 'there') return;
        this.#state = 'gone';
        options.onLost();
      },
      onEnd: () => {
        this.#wake('fails', 'waits');
      },
      onSlots: options.onSlots,
    });
  }

  get isThere(): boolean {
    return this.#state === 'there';
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  get isUsable(): boolean {
    return this.#state === 'there' && this.client.state === 'ready';
  }

  /** The server replies and refuses the connection; its owner was notified of the reason. */
  get isRefused(): boolean {
    return this.#refusalWasSaid;
  }

  /** A try to connect has failed, and none has succeeded since. */
  get hasFailed(): boolean {
    return this.#lastError !== undefined;
  }

  /** Resolves when it is usable, or a try to make it so has failed. */
  async becomesUsable(whileDown: WhileDown): Promise<void> {
    await this.#connected(whileDown);
    if (this.client.state === 'ready' && this.#state !== 'there') await this.#verify();
  }

  /** Why a request could not be sent: within its time, or until that was over. */
  problem(when: 'in time' | 'too late', timeLimitMs: number): Unavailable {
    const limit = `${String(timeLimitMs)} ms`;
    if (this.client.state === 'ready')
      return this.#refusal ?? this.fail('timeout', `no answer within ${limit}`);
    const problem =
      this.#lastError ?? (when === 'in time' ? CLOSED : `not connected within ${limit}`);
    // The server is reachable, and refuses the login until an operator changes a password.
    if (isLoginRefusal(problem)) return this.fail('error', problem, 'for good');
    const hint = this.#state === 'new' ? this.client.hintAt?.(problem) : undefined;
    return this.fail('connection', `${problem}${hint ?? ''}`);
  }

  close(): void {
    this.#state = 'closed';
    this.client.disconnect();
    // ioredis reports no end of a connection that it was about to try again.
    this.#wake('fails', 'waits');
  }

  /** Until ready, or until a try to connect has failed: any, or for those who wait one that will fail until a setting is changed. */
  #connected(whileDown: WhileDown): Promise<void> {
    const { client } = this;
    if (client.state === 'idle') client.connect();
    if (client.state === 'ready' || client.state === 'ended') return Promise.resolve();
    const problem = this.#lastError;
    if (problem !== undefined && (whileDown === 'fails' || isLoginRefusal(problem)))
      return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting[whileDown].push(resolve);
    });
  }

  #wake(...all: readonly WhileDown[]): void {
    for (const whileDown of all) for (const go of this.#waiting[whileDown].splice(0)) go();
  }

  /** Once for each connection, and again when a request comes after it has failed: a setting may have been changed. */
  #verify(): Promise<void> {
    this.#verifying ??= this.#tryVerifying().finally(() => {
      this.#verifying = undefined;
    });
    return this.#verifying;
  }

  /** Never rejects. If nothing has to be asked, the connection is ready when this returns. */
  async #tryVerifying(): Promise<void> {
    const { client } = this;
    const { database } = this.#source;
    const { readsRun, onThere } = this.#options;
    let run: string | undefined;
    try {
      if (client.kind === 'single' && (database !== 0 || readsRun))
        run = await verifyConnection(client, { database, readsRun });
    } catch (error) {
      this.#refuse(error);
      return;
    }
    if (client.state !== 'ready' || this.#state === 'closed') return;
    this.#state = 'there';
    this.#refusal = undefined;
    this.#refusalWasSaid = false;
    this.#onAnswer();
    onThere(run);
  }

  #refuse(error: unknown): void {
    const isLasting = error instanceof DatabaseRefusal;
    if (!isLasting && !isReply(error)) return; // the connection broke, which its events report
    this.#onAnswer();
    const problem = messageOf(error);
    this.#refusal = this.fail('error', problem, isLasting ? 'for good' : 'for a moment');
    if (!isLasting || this.#refusalWasSaid || this.#state === 'closed') return;
    this.#refusalWasSaid = true;
    this.#options.onRefused(this.#source.redact(problem));
  }
}
