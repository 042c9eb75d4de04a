import { newOwnerToken } from '../../owner-token.js';
import type { Unavailable } from '../../lock-store.js';
import type { Group } from './key-groups.js';
import { isOneSlot, trialKey } from '../scripts/key-names.js';
import type { NodeAcquire } from './node-acquire.js';
import type { NodeRelease } from './node-release.js';
import type { NodeScripts } from './node-scripts.js';

interface Verbs {
  readonly acquire: NodeAcquire;
  readonly release: NodeRelease;
}

/** Grants without a caller, to see whether the node grants. */
export class NodeTrial {
  readonly #scripts: NodeScripts;
  readonly #verbs: Verbs;
  readonly #name: string;
  #trials = 0;

  constructor(scripts: NodeScripts, verbs: Verbs) {
    this.#scripts = scripts;
    this.#verbs = verbs;
    this.#name = scripts.parts.runtime.uuid();
  }

  /** A name in the database that our Redis user may use if it may use any. */
  get main(): string {
    return this.#scripts.parts.slots.names(trialKey(this.#name, 0)).main;
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
    const { slots, options, prefix, connection, runtime } = this.#scripts.parts;
    const nextKey = (): string => {
      this.#trials += 1;
      return trialKey(this.#name, this.#trials);
    };
    let key = nextKey();
    if (isOneSlot(prefix) && !serves(slots.slot(key))) return undefined; // no lock is in these slots
    while (!serves(slots.slot(key))) key = nextKey();
    const slot = slots.slot(key);
    const names = slots.names(key);
    const group: Group = { slot, names: [names] };
    const { nodeTimeoutMs: ttlMs } = options;
    const request = { keys: [key], token: newOwnerToken(runtime), ttlMs };
    const { acquire, release } = this.#verbs;
    const vote = await acquire.acquireGroup({ group, request, proposal: 0, fenceKeepMs: 0 });
    if (vote.status === 'unavailable') return vote;
    const lastToken = vote.status === 'granted' ? vote.fencingToken : undefined;
    const undone = await Promise.all([
      release.releaseGroup(group, request, { lastToken }),
      // Nothing of it is to be found later.
      connection.look(ttlMs, ({ client }) => client.command('del', names.fence)),
    ]);
    return undone.find((outcome) => outcome.status === 'unavailable');
  }
}
