import type { Command } from '../../../../lib/store/redis/client/redis-client.js';
import type { Link, Pipe } from './link.js';
import type { Session, SimServer } from './sim-server.js';
import type { World } from './world.js';

/** What a server says to a command: a value, or an error. */
export type Answer = { readonly value: unknown } | { readonly error: string };

/** What the end of a connection at a process hears. */
export interface ClientEnd {
  readonly onOpen: () => void;
  readonly onRefused: () => void;
  /** The server, or the network, has ended it. */
  readonly onClosed: () => void;
  readonly onMessage: (message: string) => void;
  /** Has the process read an answer. */
  readonly onAnswer: (read: () => void) => void;
}

/** A TCP connection from a process to a server. */
export class Connection {
  readonly #world: World;
  readonly #toServer: Pipe;
  readonly #toProcess: Pipe;
  readonly #end: ClientEnd;
  #session: Session | undefined;
  /** Whether the process still listens. */
  #isHeard = true;
  #isOpen = false;
  onGone: () => void = () => undefined;

  /** @param resolve which server is at the address when the connection arrives there */
  constructor(world: World, link: Link, resolve: () => SimServer, end: ClientEnd) {
    this.#world = world;
    this.#toServer = link.pipe('to server');
    this.#toProcess = link.pipe('to process');
    this.#end = end;
    this.#toServer.send(() => {
      this.#session = resolve().accept(this);
      const isAccepted = this.#session !== undefined;
      this.#toProcess.send(() => {
        if (!this.#isHeard) return;
        this.#isOpen = isAccepted;
        if (isAccepted) end.onOpen();
        else this.#close(end.onRefused);
      });
    });
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** @param hear called with the answer when that arrives */
  request(command: Command, hear: (answer: Answer) => void): void {
    this.#toServer.send(() => {
      this.#session?.receive(command, (answer) => {
        this.#toProcess.send(() => {
          if (this.#isHeard) this.#end.onAnswer(() => hear(answer));
        });
      });
    });
  }

  /** From the server, unasked. */
  push(message: string): void {
    this.#toProcess.send(() => {
      if (this.#isHeard) this.#end.onMessage(message);
    });
  }

  /** The process sends no more; the server closes when it has answered everything. */
  finish(): void {
    this.#toServer.send(() => {
      this.#session?.finish();
    });
  }

  /** The server has closed it. */
  finished(): void {
    this.#toProcess.send(() => {
      if (this.#isHeard) this.#close(this.#end.onClosed);
    });
  }

  /** The process hears nothing more. What it has sent still arrives, and the end of it too. */
  abandon(): void {
    if (!this.#isHeard) return;
    this.finish();
    this.#close(() => undefined);
  }

  /** Nothing comes through any more, and neither end notices. */
  stall(): void {
    this.#toServer.stall();
    this.#toProcess.stall();
  }

  /** Both ends notice at once, and what is on its way is lost. */
  reset(): void {
    this.#break();
    this.#session?.end();
    this.#world.in(0, () => {
      if (this.#isHeard) this.#close(this.#end.onClosed);
    });
  }

  /** The server has gone: what was on its way is lost, and the process is notified if the way to it is whole. */
  resetByServer(): void {
    this.#toServer.break();
    this.finished();
  }

  #break(): void {
    this.#toServer.break();
    this.#toProcess.break();
  }

  #close(tell: () => void): void {
    this.#isHeard = false;
    this.onGone();
    tell();
  }
}
