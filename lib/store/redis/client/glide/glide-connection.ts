import type { Runtime } from '../../../../time/runtime.js';
import { leavesReplicas } from '../leaves-replicas.js';
import type { ClientEvents, ClientState } from '../redis-client.js';
import { CLOSED } from '../reply-errors.js';
import { retryDelay } from '../retry-delay.js';
import { connectError } from './glide-replies.js';
import { GlideSession, type MasterOf } from './glide-session.js';
import type { OwnGlideClient, Route } from './glide-shape.js';

/** A server that is connected replies sooner, nearly always. Then another client is created, to see whether it can be reached. */
const LOOK_MS = 250;

/** A connection that is not used is pinged after once or twice this time: GLIDE does not tell that it broke. */
const PING_MS = 1_000;

/** Makes a client that is connected, or none where it was aborted before it began to connect. */
export type ClientMaker = (signal: AbortSignal) => Promise<OwnGlideClient>;

/** What differs between one server and a Cluster. */
export interface GlideConnectionOptions {
  readonly create: ClientMaker;
  readonly events: Omit<ClientEvents, 'onSlots'>;
  readonly runtime: Runtime;
  /** Runs before a client is used. */
  readonly prepare?: (session: GlideSession) => Promise<void>;
  /**
   * Helps a client of which a connection broke to connect again, as that of a Cluster does. Default: it has one connection, and is
   * replaced with it.
   */
  readonly mend?: (client: OwnGlideClient, signal: AbortSignal) => Promise<void>;
}

/** Our connection for commands: one client of GLIDE after the other. One whose connection broke is closed, and another one is created. */
export class GlideConnection {
  readonly #options: GlideConnectionOptions;
  readonly #leaves: (reply: Error) => boolean;
  readonly #ending = new AbortController();
  #state: ClientState = 'idle';
  #session: GlideSession | undefined;
  /** Tries to connect that have failed since the last one that did not. */
  #failures = 0;
  #cancelRetry: () => void = () => undefined;
  #isMending = false;
  #cancelPing: () => void = () => undefined;
  #cancelLook: (() => void) | undefined;

  constructor(options: GlideConnectionOptions) {
    this.#options = options;
    this.#leaves = leavesReplicas(options.runtime);
  }

  get state(): ClientState {
    return this.#state;
  }

  connect(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'connecting';
    void this.#open();
  }

  send(args: string[], route?: Route, masterOf?: MasterOf): Promise<unknown> {
    const session = this.#session;
    if (session === undefined) return Promise.reject(new Error(CLOSED));
    const reply = session.send(args, route, masterOf);
    if (this.#cancelLook === undefined) this.#lookLater(session);
    return reply;
  }

  reconnect(): void {
    const session = this.#session;
    if (session !== undefined) this.#lost(session);
  }

  disconnect(): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#ending.abort();
    this.#cancelRetry();
    this.#end();
    this.#options.events.onClose();
    this.#options.events.onEnd();
  }

  async #open(): Promise<void> {
    const { create, events } = this.#options;
    let client: OwnGlideClient;
    try {
      client = await create(this.#ending.signal);
    } catch (error) {
      if (this.#state === 'ended') return;
      this.#retryLater();
      events.onError(connectError(error));
      events.onClose();
      return;
    }
    if (this.#state === 'ended') client.close();
    else await this.#use(client);
  }

  async #use(client: OwnGlideClient): Promise<void> {
    const { prepare, events, mend } = this.#options;
    const session = new GlideSession(client, {
      onRefused: (reply) => {
        if (this.#leaves(reply)) this.#lost(session);
      },
      onBroken: () => {
        if (mend === undefined) this.#lost(session);
        else this.#mend(client, mend);
      },
    });
    this.#session = session;
    events.onConnect();
    try {
      await prepare?.(session);
    } catch (error) {
      this.#lost(session, connectError(error));
    }
    if (this.#session !== session) return;
    this.#failures = 0;
    this.#state = 'ready';
    if (mend === undefined) this.#pingLater(session);
    events.onReady();
  }

  /** @param problem of a connection that was never usable */
  #lost(session: GlideSession, problem?: string): void {
    if (this.#session !== session) return;
    this.#state = 'connecting';
    this.#end();
    this.#retryLater();
    if (problem !== undefined) this.#options.events.onError(problem);
    this.#options.events.onClose();
  }

  #end(): void {
    this.#cancelPing();
    this.#cancelLook?.();
    this.#cancelLook = undefined;
    this.#session?.end();
    this.#session = undefined;
  }

  #retryLater(): void {
    const { runtime } = this.#options;
    this.#failures += 1;
    this.#cancelRetry = runtime.setTimer(() => {
      void this.#open();
    }, retryDelay(runtime)(this.#failures));
  }

  #mend(client: OwnGlideClient, mend: NonNullable<GlideConnectionOptions['mend']>): void {
    if (this.#isMending) return;
    this.#isMending = true;
    mend(client, this.#ending.signal)
      .catch((error: unknown) => {
        this.#options.events.onError(connectError(error));
      })
      .finally(() => {
        this.#isMending = false;
      });
  }

  #pingLater(session: GlideSession): void {
    const { replies } = session;
    this.#cancelPing = this.#options.runtime.setTimer(
      () => {
        if (session.replies === replies && !session.isBusy)
          this.send(['ping']).catch(() => undefined);
        this.#pingLater(session);
      },
      PING_MS,
      'background',
    );
  }

  /** What was sent after the connection broke waits in GLIDE until its time is up. */
  #lookLater(session: GlideSession): void {
    if (this.#options.mend !== undefined) return;
    const { replies } = session;
    this.#cancelLook = this.#options.runtime.setTimer(
      () => {
        this.#cancelLook = undefined;
        if (this.#session !== session || !session.isBusy) return;
        if (session.replies > replies || session.isWaiting) this.#lookLater(session);
        else void this.#look(session);
      },
      LOOK_MS,
      'background',
    );
  }

  /** The client that replies first is used from then on: the present one or a new one. */
  async #look(session: GlideSession): Promise<void> {
    const { replies } = session;
    const isSilent = (): boolean => this.#session === session && session.replies === replies;
    this.#cancelLook = () => undefined;
    const found = await this.#options.create(this.#ending.signal).then(
      (client) => ({ client }),
      (error: unknown) => ({ problem: connectError(error) }),
    );
    if ('problem' in found) {
      if (isSilent()) this.#lost(session, found.problem);
    } else if (isSilent() && session.isBusy) {
      this.#state = 'connecting';
      this.#end();
      this.#options.events.onClose();
      await this.#use(found.client);
      return;
    } else found.client.close();
    if (this.#session !== session) return;
    this.#cancelLook = undefined;
    if (session.isBusy) this.#lookLater(session);
  }
}
