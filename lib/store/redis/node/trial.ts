import type { Unavailable } from '../../lock-store.js';
import { newOwnerToken } from '../../owner-token.js';
import type { RedisClient } from '../client/redis-client.js';
import { isOneSlot, trialKey } from '../scripts/key-names.js';
import { acquireInSlot } from './acquire.js';
import { releaseInSlot } from './release.js';
import type { Server } from './server.js';

const SLOTS_OF_A_CLUSTER = 16_384;

/** A server that may grant: the only one, or a master of a Cluster. */
export interface Place {
  readonly name: string;
  /** `undefined` while there is no connection to it. */
  readonly reachable: Pick<RedisClient, 'command'> | undefined;
  /** Whether it has a slot; `undefined` of a master that has none, and so nothing to grant. */
  readonly serves: ((slot: number) => boolean) | undefined;
}

/** Grants without a caller, to see whether the node grants. */
export class NodeTrial {
  readonly #server: Server;
  readonly #name: string;
  #trials = 0;

  constructor(server: Server) {
    this.#server = server;
    this.#name = server.runtime.uuid();
  }

  /** A name in the database that our Redis user may use if it may use any. */
  get main(): string {
    return this.#server.names(trialKey(this.#name, 0)).main;
  }

  /**
   * The places where the node may grant. A Cluster has a place for each master that slots belong to, connected or not. A master without
   * slots is one, too. ioredis takes a master that it cannot connect to off its list.
   */
  places(): readonly Place[] {
    const { name, connection } = this.#server;
    const { client } = connection;
    const connected = new Map(client.masters().map((master) => [master.address, master]));
    // A Cluster has none before it is connected to.
    if (connected.size === 0) return [{ name, reachable: client, serves: () => true }];
    const owners = new Set<string>();
    for (let slot = 0; slot < SLOTS_OF_A_CLUSTER; slot += 1) {
      const owner = client.ownerOf(slot);
      if (owner !== undefined) owners.add(owner);
    }
    return [...new Set([...connected.keys(), ...owners])].map((address) => ({
      name: address,
      reachable: connected.get(address),
      serves: owners.has(address) ? (slot) => client.ownerOf(slot) === address : undefined,
    }));
  }

  /** At all places: a master of a Cluster that grants locks does not speak for the others. */
  async tryAll(): Promise<Unavailable | undefined> {
    const isCluster = this.#server.connection.client.masters().length > 0;
    const failures = await Promise.all(
      this.places().map(async (place) => {
        const failed = await this.tryGranting(place);
        return failed && isCluster ? inPlace(failed, place.name) : failed;
      }),
    );
    return failures.find((failed) => failed !== undefined);
  }

  /**
   * Does what a grant and a release do, with a lease that ends within `nodeTimeout` whatever happens, under a key
   * that no caller can lock and no other trial uses. Returns why that failed. Never rejects.
   */
  async tryGranting({ serves }: Pick<Place, 'serves'>): Promise<Unavailable | undefined> {
    const server = this.#server;
    if (server.twin !== undefined || serves === undefined) return undefined; // it has no vote, or nothing to grant
    const nextKey = (): string => {
      this.#trials += 1;
      return trialKey(this.#name, this.#trials);
    };
    let key = nextKey();
    if (isOneSlot(server.prefix) && !serves(server.slot(key))) return undefined; // no lock is in these slots
    while (!serves(server.slot(key))) key = nextKey();
    const { nodeTimeoutMs: ttlMs } = server.options;
    const lease = { keys: [key], token: newOwnerToken(server.runtime), ttlMs };
    const vote = await acquireInSlot(server, lease);
    if (vote.status === 'unavailable') return vote;
    const lastToken = vote.status === 'granted' ? vote.fencingToken : undefined;
    const { fence } = server.names(key);
    const undone = await Promise.all([
      releaseInSlot(server, lease, { lastToken }),
      // Nothing of it is to be found later.
      server.connection.look(ttlMs, ({ client }) => client.command('del', fence)),
    ]);
    return undone.find((outcome) => outcome.status === 'unavailable');
  }
}

/** On a Cluster: names the master in what went wrong. */
const inPlace = (failed: Unavailable, address: string): Unavailable => ({
  ...failed,
  nodes: failed.nodes.map((node) => ({ ...node, message: `${address}: ${node.message}` })),
});
