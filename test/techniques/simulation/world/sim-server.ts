import type { Command } from '../../../../lib/store/redis/client/redis-client.js';
import type { ServerPlan } from '../scenario.js';
import { SimClock } from './clock.js';
import type { Answer, Connection } from './connection.js';
import { Replication } from './replication.js';
import { newServer, type Context, type Server } from './server.js';
import type { World } from './world.js';

const WRONG_PASSWORD = 'WRONGPASS invalid username-password pair or user is disabled.';

interface Work {
  readonly session: Session;
  readonly command: Command;
  readonly answer: (answer: Answer) => void;
}

/** A Redis server: its clock, its connections, its data, and what is wrong with it. */
export class SimServer {
  readonly name: string;
  readonly clock: SimClock;
  readonly replication: Replication;
  readonly #world: World;
  readonly #sessions = new Set<Session>();
  readonly #notes: unknown[] = [];
  #work: Work[] = [];
  #server: Server;
  #state: 'up' | 'loading' | 'down' = 'up';
  #frozenUntilUs = 0;
  #isBusy = false;
  #crashes = 0;
  /** How long it takes for a command. */
  slowUs = 0;
  /** Connections that begin now have the wrong password, as long as this is not 0. */
  wrongPasswords = 0;
  /** The names of keys to which nobody has a right. */
  readonly forbidden = new Set<string>();

  constructor(world: World, name: string, { clock, replicas }: ServerPlan) {
    this.#world = world;
    this.name = name;
    this.clock = new SimClock(world, clock);
    this.#server = newServer(name);
    this.replication = new Replication(world, name);
    this.replication.connect(replicas, this.#server);
  }

  get server(): Server {
    return this.#server;
  }

  get sessions(): ReadonlySet<Session> {
    return this.#sessions;
  }

  /** For how long it will keep a key, if nobody does anything; 0 if that does not exist. */
  leftMs(key: string): number {
    return this.#server.leftMs(key, this.clock.wallUs) / this.clock.rate;
  }

  get isUp(): boolean {
    return this.#state === 'up';
  }

  accept(connection: Connection): Session | undefined {
    if (this.#state === 'down') return undefined;
    const session = new Session(this, connection);
    this.#sessions.add(session);
    return session;
  }

  /** It has ended. */
  drop(session: Session): void {
    this.#sessions.delete(session);
    if (this.#work.some((work) => work.session === session))
      this.#work = this.#work.filter((work) => work.session !== session);
  }

  receive(work: Work): void {
    this.#work.push(work);
    this.#goOn();
  }

  /** SIGSTOP, or a slow command of somebody else. */
  freeze(forMs: number): void {
    this.#frozenUntilUs = Math.max(this.#frozenUntilUs, this.#world.nowUs + forMs * 1_000);
    this.#world.at(this.#frozenUntilUs, () => this.#goOn());
  }

  /** @param data older: what is on its disk */
  crash(data: 'kept' | 'lost' | Server): void {
    this.#crashes += 1;
    this.#state = 'down';
    if (typeof data !== 'string') {
      this.#server = data;
      this.replication.connect(this.replication.replicas, data);
    }
    this.#server.restart(data === 'lost' ? 'lost' : 'kept');
    this.#work = [];
    for (const session of [...this.#sessions]) session.crash();
  }

  /** Replaces its data by older data from a disk. Its clients stay connected. */
  restore(data: Server): void {
    this.#server = data;
    this.replication.connect(this.replication.replicas, data);
  }

  /** Everybody who is connected has to connect again. */
  dropConnections(): void {
    for (const session of [...this.#sessions]) session.crash();
  }

  /** It is back when it was started as often as it has crashed. */
  start(loadingMs: number): void {
    this.#crashes -= 1;
    if (this.#crashes > 0) return;
    this.replication.catchUp(this.#server);
    this.#state = 'loading';
    this.#world.in(loadingMs * 1_000, () => {
      if (this.#state === 'loading') this.#state = 'up';
    });
  }

  /** What a replica knew becomes what everybody gets. */
  failOver(to: 'first' | 'last'): void {
    const replica = this.replication.promoted(to);
    if (replica === undefined) return;
    this.dropConnections();
    this.#work = [];
    this.#server = replica;
    this.replication.connect(this.replication.replicas, replica);
  }

  /** What an operator does. */
  command(...command: Command): Answer {
    const answer = this.#server.execute(command, this.#context);
    this.replication.written(this.#server);
    return answer;
  }

  setMemory(memory: 'full' | 'enough'): void {
    this.#server.setMemory(memory);
  }

  publish(channel: string, message: string): number {
    let heard = 0;
    for (const session of this.#sessions) {
      if (!session.channels.has(channel)) continue;
      session.push(message);
      heard += 1;
    }
    return heard;
  }

  subscribers(channel: string): number {
    let count = 0;
    for (const session of this.#sessions) if (session.channels.has(channel)) count += 1;
    return count;
  }

  get #context(): Context {
    return {
      nowUs: this.clock.wallUs,
      publish: (channel, message) => this.publish(channel, message),
      subscribers: (channel) => this.subscribers(channel),
    };
  }

  #goOn(): void {
    while (this.#work.length > 0 && !this.#isBusy) {
      if (this.#world.nowUs < this.#frozenUntilUs) return;
      const { session, command, answer } = this.#work.shift()!;
      if (this.slowUs > 0) {
        this.#isBusy = true;
        this.#world.in(this.slowUs, () => {
          this.#isBusy = false;
          this.#goOn();
        });
      }
      this.#execute(session, command, answer);
    }
  }

  #execute(session: Session, command: Command, answer: (answer: Answer) => void): void {
    const [name, ...args] = command;
    this.#world.digest.addText(name);
    this.#world.digest.addNumber(this.#world.nowUs);
    if (name === 'end') {
      answer({ value: null });
      return;
    }
    if (this.#state === 'loading') {
      answer({ error: 'LOADING Redis is loading the dataset in memory' });
      return;
    }
    if (name === 'ping') {
      const isRefused = this.wrongPasswords > 0 && session.isNew;
      session.isNew = isRefused;
      answer(isRefused ? { error: WRONG_PASSWORD } : { value: 'PONG' });
      return;
    }
    if (name === 'subscribe') {
      session.channels.add(String(args[0]));
      answer({ value: 1 });
      return;
    }
    if (name === 'wait') {
      session.isWaiting = true;
      this.replication.whenAcknowledged(Number(args[0]), Number(args[1]), (count) => {
        session.isWaiting = false;
        answer({ value: count });
        session.goOn();
      });
      return;
    }
    // No lock depends on the audit log, so it is none of the data.
    if (name === 'xadd') {
      this.#notes.unshift(['1-1', args.slice(-2)]);
      answer({ value: '1-1' });
      return;
    }
    if (name === 'xrevrange') {
      answer({ value: this.#notes.slice(0, Number(args.at(-1))) });
      return;
    }
    if (this.forbidden.size > 0 && args.some((arg) => this.forbidden.has(String(arg)))) {
      answer({ error: 'NOPERM No permissions to access a key' });
      return;
    }
    answer(this.command(...command));
  }
}

/** A connection as the server sees it. */
export class Session {
  readonly channels = new Set<string>();
  /** It has not logged in. The first PING of a connection stands for that. */
  isNew = true;
  /** A WAIT is being answered: what comes after it has to wait. */
  isWaiting = false;
  readonly #server: SimServer;
  readonly #connection: Connection;
  #behind: Work[] = [];

  constructor(server: SimServer, connection: Connection) {
    this.#server = server;
    this.#connection = connection;
  }

  receive(command: Command, answer: (answer: Answer) => void): void {
    const work = { session: this, command, answer };
    if (this.isWaiting) this.#behind.push(work);
    else this.#server.receive(work);
  }

  /** WAIT was answered. */
  goOn(): void {
    while (this.#behind.length > 0 && !this.isWaiting) this.#server.receive(this.#behind.shift()!);
  }

  push(message: string): void {
    this.#connection.push(message);
  }

  /** Behind everything that was sent before. */
  finish(): void {
    this.receive(['end'], () => {
      this.end();
      this.#connection.finished();
    });
  }

  end(): void {
    this.#behind = [];
    this.#server.drop(this);
  }

  crash(): void {
    this.end();
    this.#connection.resetByServer();
  }
}
