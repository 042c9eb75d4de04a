import { types } from 'node:util';
import { CLOSED, isLoginRefusal, messageOf, replyError } from '../reply-errors.js';
import type { NodeClient } from './node-redis-shape.js';

/** The options of the socket that a connection needs. */
export interface OwnSocket {
  readonly reconnectStrategy: (retries: number, cause: Error) => false;
  readonly socketTimeout: undefined;
  /** Node destroys the socket with it, also while that is connecting. */
  readonly signal: AbortSignal;
}

/** Makes a client that begins to connect. Throws or rejects with what keeps it from that. */
export type Opener = (socket: OwnSocket) => Promise<NodeClient>;

export interface NodeConnectionEvents {
  readonly onConnect?: () => void;
  /** The server has replied. */
  readonly onReady: () => void;
  /** Once, with what has ended it; without, where we have. */
  readonly onEnd: (problem?: Error) => void;
  /** The server has replied with an error. */
  readonly onRefused?: (reply: Error) => void;
}

/**
 * One connection with node-redis. Its client connects once, and is never used again when the connection is over. By itself, node-redis
 * would connect again, differently in each of its versions.
 */
export class NodeConnection {
  /** How many replies have come. */
  replies = 0;
  #client: NodeClient | undefined;
  #state: 'connecting' | 'connected' | 'ready' | 'over' = 'connecting';
  readonly #abort = new AbortController();
  readonly #events: NodeConnectionEvents;

  constructor(open: Opener, events: NodeConnectionEvents) {
    this.#events = events;
    const socket: OwnSocket = {
      socketTimeout: undefined,
      signal: this.#abort.signal,
      // The only moment at which all versions can be ended whole: before that, they count as open.
      reconnectStrategy: (_retries, cause) => {
        this.#fail(cause);
        return false;
      },
    };
    // What throws here would end the process: a timer may open the connection.
    new Promise<NodeClient>((resolve) => {
      resolve(open(socket));
    }).then(
      (client) => {
        this.#use(client);
      },
      (error: unknown) => {
        this.#fail(error);
      },
    );
  }

  get isReady(): boolean {
    return this.#state === 'ready';
  }

  /** The network has connected; the server may not have replied. */
  get isConnected(): boolean {
    return this.#state === 'connected' || this.#state === 'ready';
  }

  send(args: readonly string[]): Promise<unknown> {
    return this.#ask((client) => client.sendCommand(args));
  }

  /** Calls back with the client, which is ready. Rejects as `RedisClient` does. */
  async ask(question: (client: NodeClient) => Promise<unknown>): Promise<void> {
    await this.#ask(question);
  }

  end(problem?: Error): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    // While the socket connects, the client does not know it yet, so the signal ends it.
    if (this.#client?.isOpen === true) this.#client.destroy();
    this.#abort.abort();
    this.#events.onEnd(problem);
  }

  #use(client: NodeClient): void {
    this.#client = client;
    client.on('error', (error: Error) => {
      this.#fail(error);
    });
    if (this.#state === 'over') {
      if (client.isOpen) client.destroy();
      return;
    }
    client.on('connect', () => {
      if (this.#state !== 'connecting') return;
      this.#state = 'connected';
      this.#events.onConnect?.();
    });
    client.on('ready', () => {
      const ready = (): void => {
        if (this.#state === 'over') return;
        this.#state = 'ready';
        this.#events.onReady();
      };
      // node-redis has sent nothing, and a proxy accepts connections to a server that is away. A refusal is a reply, too: a user may be
      // forbidden to name connections, which would end one that node-redis names by itself.
      client.sendCommand(['client', 'SETNAME', 'holdfast']).then(ready, (reply: unknown) => {
        if (isLoginRefusal(messageOf(reply))) this.#fail(reply);
        else ready();
      });
    });
  }

  #fail(error: unknown): void {
    // `instanceof` is false for errors of Node where a test of Jest runs.
    this.end(types.isNativeError(error) ? error : new Error(String(error)));
  }

  #ask(question: (client: NodeClient) => Promise<unknown>): Promise<unknown> {
    if (this.#state !== 'ready' || this.#client === undefined)
      return Promise.reject(new Error(CLOSED));
    return question(this.#client).then(this.#arrived, this.#refused);
  }

  readonly #arrived = (value: unknown): unknown => {
    this.replies += 1;
    return value;
  };

  /** While the connection stands, nothing but a reply is an error. The class of it is not known here, and a minifier may rename it. */
  readonly #refused = (error: unknown): never => {
    if (this.#state !== 'ready') throw new Error(CLOSED, { cause: error });
    this.replies += 1;
    const reply = replyError(messageOf(error));
    this.#events.onRefused?.(reply);
    throw reply;
  };
}
