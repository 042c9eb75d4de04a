import { LockStoreUnavailableError, type NodeFailure } from '../../../errors.js';
import type { AdminStore, FoundInstance, FoundKey, InstanceRecord } from '../../admin-store.js';
import type { Looked, NodeAdmin } from '../node/node-admin.js';
import type { RedisNode } from '../node/redis-node.js';
import type { CancelTimer } from '../../../time/clock.js';
import type { Runtime } from '../../../time/runtime.js';
import { quorumOf } from './poll.js';
import { mergedKey } from './votes.js';

/** What a majority of the nodes says to operators. */
export class RedisAdminStore implements AdminStore {
  readonly #nodes: readonly RedisNode[];
  readonly #quorum: number;
  readonly #runtime: Runtime;

  constructor(nodes: readonly RedisNode[], runtime: Runtime) {
    this.#nodes = nodes;
    this.#runtime = runtime;
    this.#quorum = quorumOf(nodes.length);
  }

  listen(onMessage: (text: string) => void): () => void {
    for (const node of this.#nodes) node.onMessage = onMessage;
    return () => {
      for (const node of this.#nodes) node.onMessage = undefined;
    };
  }

  /** One address a node, in their order; of those, too, over which nothing is heard yet: a place in line is known by its channel. */
  address(): string | undefined {
    const isHearing = this.#nodes.some(({ inbox }) => inbox.isSubscribed);
    return isHearing ? JSON.stringify(this.#nodes.map(({ inbox }) => inbox.address)) : undefined;
  }

  async report(record: InstanceRecord, lifeMs: number): Promise<void> {
    await this.#ask('describe this instance to', [], (node) => node.report(record, lifeMs));
  }

  async retract(id: string): Promise<void> {
    await this.#ask('take this instance from', [], (node) => node.retract(id));
  }

  async instances(): Promise<readonly FoundInstance[]> {
    const answers = await this.#ask('list instances of', [], (node) => node.instances());
    const latest = new Map<string, FoundInstance>();
    for (const instance of answers.flat()) {
      const known = latest.get(instance.id);
      if (known === undefined || instance.seenMsAgo < known.seenMsAgo)
        latest.set(instance.id, instance);
    }
    return [...latest.values()].sort((a, b) => b.startedAtMs - a.startedAtMs);
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    const failures: NodeFailure[] = [];
    let answered = 0;
    for (const { admin } of this.#nodes) {
      let isWhole = true;
      for await (const some of admin.keys(prefix)) {
        if (some.status === 'answered') yield some.value;
        else {
          isWhole = false;
          failures.push(...some.nodes);
        }
      }
      if (isWhole) answered += 1;
    }
    if (answered < this.#quorum)
      throw new LockStoreUnavailableError({ operation: 'list', keys: [], nodes: failures });
  }

  async look(keys: readonly string[]): Promise<readonly FoundKey[]> {
    const answers = await this.#ask('inspect', keys, (node) => node.look(keys));
    return keys.map((key, index) => {
      const found = answers.flatMap((each) => each[index] ?? []);
      return mergedKey(key, found, this.#nodes.length);
    });
  }

  async tell(address: string, text: string): Promise<void> {
    const addresses = JSON.parse(address) as readonly string[];
    await this.#enough(
      this.#nodes.map(async ({ admin }, index) => {
        const at = addresses[index];
        if (at !== undefined) await admin.tell(at, text);
      }),
      () => true,
    );
  }

  async forgetOnce(key: string): Promise<boolean> {
    const answers = await this.#ask('forget', [key], (node) => node.forgetOnce(key));
    return answers.includes(true);
  }

  async note(entry: string): Promise<void> {
    await this.#ask('write to the audit log of', [], (node) => node.note(entry));
  }

  async notes(count: number): Promise<readonly string[]> {
    const answers = await this.#ask('read the audit log of', [], (node) => node.notes(count));
    return [...new Set(answers.flat())];
  }

  /** The answers of those that gave one. */
  async #ask<T>(
    operation: string,
    keys: readonly string[],
    ask: (admin: NodeAdmin) => Promise<Looked<T>>,
  ): Promise<readonly T[]> {
    const looked = await this.#enough(
      this.#nodes.map(({ admin }) => ask(admin)),
      ({ status }) => status === 'answered',
    );
    const answers = looked.flatMap((each) => (each.status === 'answered' ? [each.value] : []));
    if (answers.length >= this.#quorum) return answers;
    const nodes = looked.flatMap((each) => (each.status === 'unavailable' ? each.nodes : []));
    throw new LockStoreUnavailableError({ operation, keys, nodes });
  }

  /** What all of them say; or, soon after a majority has answered, what there is by then: one silent node delays no operator. */
  #enough<T>(asked: readonly Promise<T>[], isAnswer: (said: T) => boolean): Promise<readonly T[]> {
    const said: T[] = [];
    return new Promise((resolve, reject) => {
      let cancel: CancelTimer | undefined;
      const end = (): void => {
        cancel?.();
        resolve([...said]);
      };
      for (const each of asked)
        each.then((answer) => {
          said.push(answer);
          if (said.length === asked.length) end();
          else if (said.filter(isAnswer).length >= this.#quorum)
            cancel ??= this.#runtime.setTimer(end, LATECOMERS_MS);
        }, reject);
    });
  }
}

/** For so long those are waited for that answer after a majority. */
const LATECOMERS_MS = 250;
