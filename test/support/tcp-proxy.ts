import { createServer, type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { Wire, type WireConditions } from './wire.js';

/** Which way the bytes go that a fault applies to. */
export type Direction = 'to-server' | 'to-client' | 'both';

interface AwaitedBytes {
  readonly pattern: string;
  /** The end of what each client has sent since, so that a pattern is found across chunks. */
  readonly tails: Map<Socket, string>;
  resolve(): void;
}

/** A network between a client and a server on this machine that the test can slow down, hold and cut. */
export class TcpProxy {
  /** Connect here in place of the server's port. */
  readonly port: number;
  readonly #server: Server;
  #targetPort: number;
  readonly #sockets = new Set<Socket>();
  #toServer = new Network();
  #toClient = new Network();
  #awaited: AwaitedBytes[] = [];
  #refuses = false;

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.#targetPort = targetPort;
    this.port = (server.address() as AddressInfo).port;
    server.on('connection', (client) => {
      this.#connect(client);
    });
  }

  /** Starts a proxy in front of `127.0.0.1:targetPort`. */
  static async start(targetPort: number): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    return new TcpProxy(server, targetPort);
  }

  /** From now on every chunk arrives `ms` later, in order; 0 ends it. It is latency, not a limit of throughput. */
  delay(ms: number, direction: Direction = 'both'): void {
    for (const network of this.#networks(direction)) network.delayMs = ms;
  }

  /** Holds all bytes, those on their way too, and the ends of connections: silence without an error. */
  pause(direction: Direction = 'both'): void {
    for (const network of this.#networks(direction)) network.hold();
  }

  /** Delivers what was held, in order. */
  resume(direction: Direction = 'both'): void {
    for (const network of this.#networks(direction)) network.letGo();
  }

  /** Holds all bytes of the connections that stand, for good: the network has dropped them without a word. New ones are served. */
  dropSilently(): void {
    this.pause();
    this.#toServer = new Network();
    this.#toClient = new Network();
  }

  /** Destroys all connections; what was held or delayed is lost. New ones are accepted. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Destroys every new connection at once; those that stand are left alone. */
  refuse(): void {
    this.#refuses = true;
  }

  /** New connections lead to `127.0.0.1:targetPort`; those that stand are left alone. */
  leadTo(targetPort: number): void {
    this.#targetPort = targetPort;
  }

  /** Accepts connections again. */
  accept(): void {
    this.#refuses = false;
  }

  /**
   * Resolves when some client sends these bytes, counted from the call. They have reached the proxy then, not
   * yet the server: `pause('to-server')` before it keeps them from there. A pattern in lower case also finds
   * capitals: clients differ in how they write command names.
   */
  whenClientSends(pattern: string): Promise<void> {
    return new Promise((resolve) => {
      this.#awaited.push({ pattern, tails: new Map(), resolve });
    });
  }

  /** Cuts all connections and closes the port. */
  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
    this.cut();
    this.resume();
    await closed;
  }

  #connect(client: Socket): void {
    if (this.#refuses) {
      client.on('error', () => undefined).destroy();
      return;
    }
    const server = connect({
      host: '127.0.0.1',
      port: this.#targetPort,
      allowHalfOpen: true,
      noDelay: true,
    });
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined); // the close that follows is passed on
      socket.once('close', () => this.#sockets.delete(socket));
    }
    client.on('data', (bytes: Buffer) => {
      this.#recognise(client, bytes);
    });
    new Wire(client, server, this.#toServer);
    new Wire(server, client, this.#toClient);
  }

  #recognise(client: Socket, bytes: Buffer): void {
    this.#awaited = this.#awaited.filter(({ pattern, tails, resolve }) => {
      const text = (tails.get(client) ?? '') + bytes.toString('latin1');
      if (text.includes(pattern) || text.toLowerCase().includes(pattern)) {
        resolve();
        return false;
      }
      tails.set(client, text.slice(-pattern.length));
      return true;
    });
  }

  #networks(direction: Direction): Network[] {
    if (direction === 'to-server') return [this.#toServer];
    if (direction === 'to-client') return [this.#toClient];
    return [this.#toServer, this.#toClient];
  }
}

/** The conditions for one direction of all connections. */
class Network implements WireConditions {
  delayMs = 0;
  passable: Promise<void> | undefined;
  #open: (() => void) | undefined;

  hold(): void {
    this.passable ??= new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  letGo(): void {
    this.passable = undefined;
    this.#open?.();
  }
}
