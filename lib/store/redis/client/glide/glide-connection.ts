import type { Runtime } from '../../../../time/runtime.js';
import { leavesReplicas } from '../leaves-replicas.js';
import type { ClientEvents, ClientState } from '../redis-client.js';
import { CLOSED } from '../reply-errors.js';
import { retryDelay } from '../retry-delay.js';
import { connectError } from './glide-replies.js';
import { GlideSession } from './glide-session.js';
import type { OwnGlideClient, Route } from './glide-shape.js';

/** A server that is connected replies sooner, nearly always. Then another client is created, to see whether it can be reached. */
const LOOK_MS = 250;

/** What differs between one server and a Cluster. */
export interface GlideConnectionOptions {
  readonly create: () => Promise<OwnGlideClient>;
  readonly events: Omit<ClientEvents, 'onSlots'>;
  readonly runtime: Runtime;
  /** Runs before a client is used. */
  readonly prepare?: (session: GlideSession) => Promise<void> | void;
  /** GLIDE replaces connections to nodes of a Cluster. One server has one connection, and its client is replaced with it. */
  readonly whenBroken: 'replace' | 'keep';
}

/**
 * Our connection for commands: one client of GLIDE after the other. GLIDE would connect again by itself, and requests would wait in it
 * meanwhile. So a client whose connection broke is closed, which drops what waits in it, and another one is created.
 */
export class GlideConnection {
  readonly #options: GlideConnectionOptions;
  readonly #leaves: (reply: Error) => boolean;
  #state: ClientState = 'idle';
  #session: GlideSession | undefined;
  /** Tries to connect that have failed since the last one that did not. */
  #failures = 0;
  #cancelRetry: () => void = () => undefined;
  #cancelLook: (() => void) | undefined;

  constructor(options: GlideConnectionOptions) {
    this.#options = options;
    this.#leaves = leavesReplicas(options.runtime);
  }

  get state(): ClientState {
    return this.#state;
  }

  /** How many replies have come over the present connection. */
  get replies(): number {
    return this.#session?.replies ?? 0;
  }

  connect(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'connecting';
    void this.#open();
  }

  send(args: string[], route?: Route): Promise<unknown> {
    const session = this.#session;
    if (session === undefined) return Promise.reject(new Error(CLOSED));
    const reply = session.send(args, route);
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
    this.#cancelRetry();
    this.#end();
    this.#options.events.onClose();
    this.#options.events.onEnd();
  }

  async #open(): Promise<void> {
    const { create, events } = this.#options;
    let client: OwnGlideClient;
    try {
      client = await create();
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
    const { prepare, events, whenBroken } = this.#options;
    const session = new GlideSession(client, {
      onRefused: (reply) => {
        if (this.#leaves(reply)) this.#lost(session);
      },
      onBroken: () => {
        if (whenBroken === 'replace') this.#lost(session);
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

  /** GLIDE tells nobody that a connection broke over which nothing was under way. */
  #lookLater(session: GlideSession): void {
    if (this.#options.whenBroken === 'keep') return;
    const { replies } = session;
    this.#cancelLook = this.#options.runtime.setTimer(
      () => {
        this.#cancelLook = undefined;
        if (this.#session !== session || !session.isBusy) return;
        if (session.replies > replies) this.#lookLater(session);
        else void this.#look(session);
      },
      LOOK_MS,
      'background',
    );
  }

  /** Whoever replies first, the present client or a new one, is used from then on. */
  async #look(session: GlideSession): Promise<void> {
    const { replies } = session;
    const isSilent = (): boolean => this.#session === session && session.replies === replies;
    this.#cancelLook = () => undefined;
    const found = await this.#options.create().then(
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
