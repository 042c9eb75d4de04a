import {
  checkedIntervention,
  type InterventionRequest,
  type Interventions,
} from '../engine/interventions.js';
import { LockConfigurationError, type Intervention } from '../errors.js';
import type { LockEngine } from '../engine/lock-engine.js';
import type { Presence } from '../engine/presence.js';
import { checkKey } from '../key/index.js';
import { hottest } from '../queue/contention.js';
import type { AdminStore, FoundKey } from '../store/admin-store.js';
import { makerIn } from '../store/owner-token.js';
import {
  type Knowledge,
  concernedBy,
  described,
  infoOf,
  isInUse,
  silentOf,
  summarized,
} from './describe.js';
import { auditEntryIn, noteOf } from './audit.js';
import type {
  AuditEntry,
  HotKeys,
  InstanceInfo,
  ListOptions,
  LockDescription,
  LockSummary,
} from './lock-admin.types.js';

/** How many keys one look reads. */
const LOOKED_AT_ONCE = 100;

/** How many interventions on one key its description names. */
const MOST_AUDITED = 20;
const MOST_NOTES = 1_000;

/** A description searches this many of the last interventions for those of its key: a page asks every second. */
const LATEST_NOTES = 200;

const NO_ANSWERS: Knowledge['answers'] = new Map();

/**
 * For operators: the holders of a key, since when they hold it, why others wait, and how to free it. It works over one
 * Redis, a Cluster and several masters. Every method rejects with a `LockStoreUnavailableError` for an outage.
 */
export class LockAdmin {
  readonly #engine: LockEngine;
  readonly #store: AdminStore;
  readonly #presence: Presence;
  readonly #interventions: Interventions;

  /** @throws LockConfigurationError for a custom store without `admin` */
  constructor(service: LockEngine) {
    const { store, presence, interventions } = service.administered;
    if (store.admin === undefined || presence === undefined)
      throw new LockConfigurationError(
        'LockAdmin needs a store that tells what is in it, and this one has no "admin". Those of Redis and of the memory do.',
      );
    this.#engine = service;
    this.#store = store.admin;
    this.#presence = presence;
    this.#interventions = interventions;
  }

  /**
   * Lists the keys that are held, waited for, or marked as work that was done once, in no order. A key that changes
   * meanwhile may be missing.
   */
  async *list({ prefix = '', limit = Infinity }: ListOptions = {}): AsyncGenerator<LockSummary> {
    const instances = await this.#shown(this.#store.instances());
    const { wallMs } = this.#engine.runtime.now();
    let listed = 0;
    try {
      for await (const found of this.#found(prefix)) {
        if (listed >= limit) return;
        if (!isInUse(found)) continue;
        listed += 1;
        yield summarized(found, { instances, answers: NO_ANSWERS, wallMs });
      }
    } catch (error) {
      throw this.#engine.administered.present(error);
    }
  }

  /**
   * Describes one key. Holders and waiting processes are asked, and have 250 ms to reply. A frozen or dead process is
   * listed as silent, with what the store knows.
   */
  async describe(key: string): Promise<LockDescription> {
    const found = await this.#look(key);
    const [instances, notes] = await this.#shown(
      Promise.all([this.#store.instances(), this.#audited(LATEST_NOTES)]),
    );
    const concerned = concernedBy(found, instances);
    const answers = await this.#presence.ask(concerned, { about: 'key', key });
    const audit = notes.filter((entry) => entry.keys.includes(key)).slice(0, MOST_AUDITED);
    const { wallMs } = this.#engine.runtime.now();
    return {
      ...described(found, { instances, answers, wallMs }),
      silent: silentOf(concerned, answers, wallMs),
      audit,
    };
  }

  /** Lists the services that use this store, the newest first. A service that was not seen for an hour is left out. */
  async instances(): Promise<readonly InstanceInfo[]> {
    const found = await this.#shown(this.#store.instances());
    const { wallMs } = this.#engine.runtime.now();
    return found.map((each) => infoOf(each, wallMs));
  }

  /** Lists the keys with the longest waits and the most refusals in the last 5 minutes, of all instances that reply. */
  async hot(limit = 10): Promise<HotKeys> {
    const instances = await this.#shown(this.#store.instances());
    const answers = await this.#presence.ask(instances, { about: 'hot' });
    const { wallMs } = this.#engine.runtime.now();
    return {
      keys: hottest(
        [...answers.values()].flatMap(({ hot = [] }) => hot),
        limit,
      ),
      silent: silentOf(instances, answers, wallMs),
    };
  }

  /**
   * Ends the locks that hold a key now. A later holder keeps the key. Resolves with whether there was a holder.
   *
   * A holder of Holdfast is notified at once: its signal aborts with `LockLostError`, reason `'force-released'`. A
   * holder that is frozen or cut off detects the loss at its next renewal.
   *
   * The key is free afterwards, even if the call rejects because the audit log could not be written.
   */
  async release(key: string, request: InterventionRequest): Promise<boolean> {
    const intervention = checkedIntervention(request);
    const found = await this.#look(key);
    if (found.holders.length === 0) return false;
    await this.#shown(this.#interventions.release([found], intervention));
    await this.#note('release', [key], intervention);
    return true;
  }

  /** Ends all locks of an instance, for a machine that is dead. Resolves with the keys. */
  async releaseInstance(id: string, request: InterventionRequest): Promise<readonly string[]> {
    const intervention = checkedIntervention(request);
    const held = await this.#shown(this.#heldBy(id));
    const keys = held.map(({ key }) => key).sort();
    if (keys.length === 0) return [];
    await this.#shown(this.#interventions.release(held, intervention));
    await this.#note('release-instance', keys, intervention);
    return keys;
  }

  /**
   * Deletes the record of work that is to be done once, so that it is done again. Resolves with whether there was one.
   */
  async forgetOnce(key: string, request: InterventionRequest): Promise<boolean> {
    const intervention = checkedIntervention(request);
    this.#checkKey(key);
    const wasThere = await this.#shown(this.#store.forgetOnce(key));
    if (wasThere) await this.#note('forget-once', [key], intervention);
    return wasThere;
  }

  /** Lists the interventions of operators, the newest first. The last 1,000 entries are kept. */
  async audit(limit = 100): Promise<readonly AuditEntry[]> {
    return (await this.#shown(this.#audited(MOST_NOTES))).slice(0, limit);
  }

  /** Each key once, with what the store has of it. */
  async *#found(prefix: string): AsyncGenerator<FoundKey> {
    const seen = new Set<string>();
    for await (const keys of this.#store.keys(prefix)) {
      const fresh = [...new Set(keys)].filter((key) => !seen.has(key));
      for (const key of fresh) seen.add(key);
      for (let i = 0; i < fresh.length; i += LOOKED_AT_ONCE)
        yield* await this.#store.look(fresh.slice(i, i + LOOKED_AT_ONCE));
    }
  }

  async #heldBy(id: string): Promise<readonly FoundKey[]> {
    const held: FoundKey[] = [];
    for await (const found of this.#found('')) {
      const holders = found.holders.filter(({ token }) => makerIn(token) === id);
      if (holders.length > 0) held.push({ ...found, holders });
    }
    return held;
  }

  #checkKey(key: string): void {
    this.#engine.checked(() => checkKey(key));
  }

  async #look(key: string): Promise<FoundKey> {
    this.#checkKey(key);
    const [found] = await this.#shown(this.#store.look([key]));
    return found ?? { key, holders: [], line: [] };
  }

  async #note(
    action: AuditEntry['action'],
    keys: readonly string[],
    { by, reason }: Intervention,
  ): Promise<void> {
    const { runtime } = this.#engine;
    const at = new Date(runtime.now().wallMs);
    const note = noteOf({ at, action, keys, by, reason }, runtime.uuid());
    await this.#shown(this.#store.note(note));
  }

  async #audited(count: number): Promise<readonly AuditEntry[]> {
    const notes = await this.#store.notes(count);
    return notes
      .flatMap((note) => auditEntryIn(note) ?? [])
      .sort((a, b) => b.at.getTime() - a.at.getTime());
  }

  /** Applies the `errors` option to the error of a rejection. */
  async #shown<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw this.#engine.administered.present(error);
    }
  }
}
