import { Connection, type ClientEnd } from './connection.js';
import { Link, type LinkPlan } from './link.js';
import type { SimProcess } from './sim-process.js';
import type { SimServer } from './sim-server.js';
import type { World } from './world.js';

/** Which server is at an address now. */
export type Addresses = ReadonlyMap<string, SimServer>;

/** Connects processes to servers, each pair over a way of its own. */
export class Network {
  readonly #world: World;
  readonly #plan: LinkPlan;
  readonly #addresses: Addresses;
  readonly #links = new Map<string, Link>();

  constructor(world: World, plan: LinkPlan, addresses: Addresses) {
    this.#world = world;
    this.#plan = plan;
    this.#addresses = addresses;
  }

  /** @param machine where the process runs: one that is started again is at the same place */
  link(machine: string, address: string): Link {
    const name = `${machine} ${address}`;
    const ends = { 'to server': address, 'to process': machine };
    const link = this.#links.get(name) ?? new Link(this.#world, this.#plan, ends);
    this.#links.set(name, link);
    return link;
  }

  dial(process: SimProcess, address: string, end: Omit<ClientEnd, 'onAnswer'>): Connection {
    const link = this.link(process.machine, address);
    const connection = new Connection(this.#world, link, () => this.#addresses.get(address)!, {
      onOpen: () => process.input(end.onOpen),
      onRefused: () => process.input(end.onRefused),
      onClosed: () => process.input(end.onClosed),
      onAnswer: (read) => process.input(read),
      onMessage: (message) => process.input(() => end.onMessage(message)),
    });
    process.connections.add(connection);
    link.connections.add(connection);
    connection.onGone = () => {
      process.connections.delete(connection);
      link.connections.delete(connection);
    };
    return connection;
  }
}
