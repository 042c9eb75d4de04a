import { connectProblem } from '../connect-problem.js';
import type { Command, Master } from '../redis-client.js';
import { CLOSED } from '../reply-errors.js';
import { textOf } from '../commands.js';
import { NodeConnection, type Opener } from './node-connection.js';

/** A connection to the node was not to be had, so nothing was sent over it. */
export class NotConnected extends Error {}

/** One node of a Cluster: connects when a command is first for it, and again after its connection has ended. */
export class ClusterNode implements Master {
  readonly address: string;
  readonly open: Opener;
  readonly #onLost: () => void;
  #connection: NodeConnection | undefined;
  #connected: Promise<NodeConnection> | undefined;

  /** @param onLost a connection was not to be had, or has ended */
  constructor(address: string, open: Opener, onLost: () => void) {
    this.address = address;
    this.open = open;
    this.#onLost = onLost;
  }

  get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  get arrived(): number {
    return this.#connection?.replies ?? 0;
  }

  command(...command: Command): Promise<unknown> {
    return this.send(textOf(command));
  }

  send(args: readonly string[]): Promise<unknown> {
    return this.#connection?.isReady === true
      ? this.#connection.send(args)
      : this.#open().then((connection) => connection.send(args));
  }

  /** Sends commands in one go: nothing comes between them. */
  async sendAll(commands: readonly (readonly string[])[]): Promise<readonly Promise<unknown>[]> {
    const connection = await this.#open();
    return commands.map((args) => connection.send(args));
  }

  disconnect(): void {
    this.#connection?.end();
  }

  #open(): Promise<NodeConnection> {
    this.#connected ??= new Promise((resolve, reject) => {
      const connection = new NodeConnection(this.open, {
        onReady: () => {
          resolve(connection);
        },
        onEnd: (problem) => {
          reject(new NotConnected(problem ? connectProblem(problem) : CLOSED, { cause: problem }));
          this.#connection = undefined;
          this.#connected = undefined;
          this.#onLost();
        },
      });
      this.#connection = connection;
    });
    return this.#connected;
  }
}
