import type { Unavailable } from '../../lock-store.js';
import { newOwnerToken } from '../../owner-token.js';
import { isOneSlot, trialKey } from '../scripts/key-names.js';
import { acquireGroup } from './acquire.js';
import { mastersOf } from './cluster-masters.js';
import { releaseGroup } from './release.js';
import type { Server } from './server.js';

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
   * Does what a grant and a release do, with a lease that ends within `nodeTimeout` whatever happens, under a key
   * that no caller can lock and no other trial uses. Returns why that failed. Never rejects.
   *
   * @param serves whether the key is to be in that slot of a Cluster
   */
  async tryGranting(
    serves: (slot: number) => boolean = () => true,
  ): Promise<Unavailable | undefined> {
    const server = this.#server;
    if (server.twin !== undefined) return undefined; // it has no vote
    const nextKey = (): string => {
      this.#trials += 1;
      return trialKey(this.#name, this.#trials);
    };
    let key = nextKey();
    if (isOneSlot(server.prefix) && !serves(server.slot(key))) return undefined; // no lock is in these slots
    while (!serves(server.slot(key))) key = nextKey();
    const group = { slot: server.slot(key), keys: [key] };
    const { nodeTimeoutMs: ttlMs } = server.options;
    const lease = { keys: [key], token: newOwnerToken(server.runtime), ttlMs };
    const vote = await acquireGroup(server, group, lease, { proposal: 0, fenceKeepMs: 0 });
    if (vote.status === 'unavailable') return vote;
    const lastToken = vote.status === 'granted' ? vote.fencingToken : undefined;
    const { fence } = server.names(key);
    const undone = await Promise.all([
      releaseGroup(server, group, lease, { lastToken }),
      // Nothing of it is to be found later.
      server.connection.look(ttlMs, ({ client }) => client.command('del', fence)),
    ]);
    return undone.find((outcome) => outcome.status === 'unavailable');
  }

  /** On a Cluster at each of its masters: one that grants locks does not speak for the others. */
  async tryGrantingEverywhere(): Promise<Unavailable | undefined> {
    const { client } = this.#server.connection;
    const masters = mastersOf(client).filter(({ hasSlots }) => hasSlots);
    if (masters.length === 0) return this.tryGranting();
    const failures = await Promise.all(
      masters.map(async ({ address, serves }) => {
        const failed = await this.tryGranting(serves);
        return failed && inPlace(failed, address);
      }),
    );
    return failures.find((failed) => failed !== undefined);
  }
}

/** On a Cluster: names the master in what went wrong. */
const inPlace = (failed: Unavailable, address: string): Unavailable => ({
  ...failed,
  nodes: failed.nodes.map((node) => ({ ...node, message: `${address}: ${node.message}` })),
});
