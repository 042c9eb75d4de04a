import {
  checkedIntervention,
  type Ending,
  type InterventionRequest,
  type Target,
} from '../engine/interventions.js';
import {
  LockConfigurationError,
  LockError,
  LockStoreUnavailableError,
  type Intervention,
} from '../errors.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { checkKey } from '../key/index.js';
import { isOverdue, isUnresponsive } from '../engine/presence.js';
import { hottest, longestWaitedFor, summed, type Contended } from '../queue/contention.js';
import { together } from '../queue/last-hour.js';
import type { FoundHolder, FoundInstance, FoundKey } from '../store/admin-store.js';
import { leaseIdOf, makerIn } from '../store/owner-token.js';
import {
  type Knowledge,
  concernedBy,
  described,
  historyIn,
  infoOf,
  isInUse,
  unresponsiveOf,
  summarized,
} from './describe.js';
import type {
  AuditEntry,
  HotKey,
  HotKeys,
  InstanceInfo,
  InterventionOutcome,
  ListOptions,
  LockDescription,
  LockSummary,
  SeenHolder,
  SeenInstance,
  SeenLock,
  SeenOnce,
} from './lock-admin.types.js';

/** How many keys one look reads. */
const LOOKED_AT_ONCE = 100;

/** How many interventions on one key its description names. */
const MOST_AUDITED = 20;
const MOST_NOTES = 1_000;

/** How many of the last holders of a key its description names. */
const MOST_PAST = 50;

/** With more instances than these, a description asks only those that hold the key or wait for it. */
const MOST_ASKED = 50;

/** A description searches this many of the last interventions for those of its key: a page asks every second. */
const LATEST_NOTES = 200;

type Done = Extract<InterventionOutcome<never>, { readonly status: 'done' }>;

const NOTHING = { status: 'nothing' } as const;

const NO_ANSWERS: Knowledge['answers'] = new Map();

/**
 * For operators: the holders of a key, since when they hold it, why others wait, and how to free it. It works over one
 * Redis, a Cluster and several masters. Every method rejects with a `LockStoreUnavailableError` for an outage.
 */
export class LockAdmin {
  readonly #engine: LockEngine;
  readonly #parts: LockEngine['administered'];

  /** @throws LockConfigurationError for a driver */
  constructor(service: LockEngine) {
    service.needsRedis('LockAdmin');
    this.#engine = service;
    this.#parts = service.administered;
  }

  /**
   * Lists the keys that are held, waited for, or marked as work that was done once, in no order. A key that changes
   * meanwhile may be missing.
   */
  async *list({
    prefix = '',
    keys,
    limit = Infinity,
  }: ListOptions = {}): AsyncGenerator<LockSummary> {
    const instances = await this.#asked();
    const { wallMs } = this.#parts.runtime.now();
    let listed = 0;
    try {
      for await (const found of this.#found(prefix, keys)) {
        if (listed >= limit) return;
        if (!isInUse(found)) continue;
        listed += 1;
        yield summarized(found, { instances, answers: NO_ANSWERS, wallMs });
      }
    } catch (error) {
      throw this.#parts.present(error);
    }
  }

  /**
   * Describes one key. Holders and waiting processes are asked, and have 250 ms to reply. A frozen or dead process is
   * listed as unresponsive, with what the store knows.
   */
  async describe(key: string): Promise<LockDescription> {
    const found = await this.#look(key);
    const [instances, notes] = await this.#engine.presented(
      Promise.all([this.#parts.store.admin.instances(), this.#audited(LATEST_NOTES)]),
    );
    const concerned = concernedBy(found, instances);
    const asked =
      instances.length > MOST_ASKED
        ? concerned
        : instances.filter((each) => concerned.includes(each) || !isUnresponsive(each));
    const answers = await this.#parts.presence.ask(asked, { about: 'key', key });
    const known = this.#parts.presence.afterAsking(instances, answers);
    const audit = notes.filter((entry) => entry.keys.includes(key)).slice(0, MOST_AUDITED);
    const { wallMs } = this.#parts.runtime.now();
    return {
      ...described(found, { instances: known, answers, wallMs }),
      unresponsive: unresponsiveOf(concerned, answers, wallMs),
      history: historyIn({ instances: known, answers, wallMs }).slice(0, MOST_PAST),
      audit,
    };
  }

  /**
   * Lists the services that use this store, the newest first, and asks each whether it is alive. A service that was not
   * seen for an hour is left out.
   */
  async instances(): Promise<readonly InstanceInfo[]> {
    const found = await this.#asked();
    const { wallMs } = this.#parts.runtime.now();
    return found.map((each) => infoOf(each, wallMs));
  }

  /**
   * Asks all instances what callers wait for now, and what they waited for and were refused in the last 5 minutes. The
   * store is not searched.
   *
   * @param limit of each list
   */
  async hot(limit = 10): Promise<HotKeys> {
    const instances = await this.#engine.presented(this.#parts.store.admin.instances());
    const answers = await this.#parts.presence.ask(instances, { about: 'hot' });
    const now = this.#parts.runtime.now();
    const all = [...answers.values()];
    const known = this.#parts.presence.afterAsking(instances, answers);
    const found = summed(all.flatMap(({ hot = [] }) => hot));
    const hotKey = (each: Contended): HotKey => hotKeyOf(each, now.wallMs);
    const hour = together(
      all.flatMap(({ minutes = [] }) => minutes),
      now,
    );
    return {
      keys: hottest(found, limit).map(hotKey),
      waiting: longestWaitedFor(found, limit).map(hotKey),
      callers: all.reduce((sum, { callers = 0 }) => sum + callers, 0),
      hour: hour.map(({ minute, ...counts }) => ({ at: new Date(minute * 60_000), ...counts })),
      unresponsive: known.filter(isUnresponsive).map((each) => infoOf(each, now.wallMs)),
    };
  }

  /**
   * Ends the locks of the holders that the operator saw: `lock` is what `describe` returned. Later holders of the key
   * keep it. If none of the seen ones has the key any more and another one does, nothing is done (`'refused'`).
   *
   * A holder of Holdfast is notified at once: its signal aborts with `LockLostError`, reason `'force-released'`. A
   * holder that is frozen or cut off detects the loss at its next renewal.
   *
   * @throws LockStoreUnavailableError when the store does not confirm the release. The key may be free or held then
   */
  async release(
    lock: SeenLock,
    request: InterventionRequest,
  ): Promise<InterventionOutcome<LockDescription>> {
    const intervention = checkedIntervention(request);
    const { key, holders } = checkedSeen(lock);
    const found = await this.#look(key);
    const seen = new Map(holders.map((each) => [each.leaseId, each]));
    const targets = targetsIn(found, ({ token }) => seen.get(leaseIdOf(token)));
    const done = await this.#end('release', targets, intervention);
    if (done !== undefined) return done;
    const now = await this.describe(key);
    return now.holders.length === 0 ? NOTHING : { status: 'refused', now };
  }

  /**
   * Ends all locks of an instance, for a machine that is dead: `instance` is what `instances` returned. If it was unresponsive
   * then, and replies now or has reported within 15 s, nothing is done (`'refused'`).
   *
   * @throws LockStoreUnavailableError when the store does not confirm the release of any key
   */
  async releaseInstance(
    { id, isUnresponsive: wasUnresponsive = false }: SeenInstance,
    request: InterventionRequest,
  ): Promise<InterventionOutcome<InstanceInfo>> {
    const intervention = checkedIntervention(request);
    if (wasUnresponsive) {
      const found = (await this.#asked()).find((each) => each.id === id);
      // A reply may be lost, and a record is late while memory is full: both have to say that it is dead.
      if (found !== undefined && !isOverdue(found))
        return { status: 'refused', now: infoOf(found, this.#parts.runtime.now().wallMs) };
    }
    const targets = await this.#engine.presented(this.#heldBy(id));
    return (await this.#end('release-instance', targets, intervention)) ?? NOTHING;
  }

  /**
   * Deletes the record of work that is to be done once, so that it is done again: `lock` is what `describe` returned. If
   * the work has another state or number of attempts by now, nothing is done (`'refused'`).
   */
  async forgetOnce(
    { key, once: seen }: SeenOnce,
    request: InterventionRequest,
  ): Promise<InterventionOutcome<LockDescription>> {
    const intervention = checkedIntervention(request);
    this.#engine.checked(() => checkKey(key));
    const { admin } = this.#parts.store;
    const isForgotten =
      seen !== undefined && (await this.#engine.presented(admin.forgetOnce(key, seen)));
    if (isForgotten) return this.#noted('forget-once', [key], intervention);
    const now = await this.describe(key);
    return now.once === undefined ? NOTHING : { status: 'refused', now };
  }

  /** Lists the interventions of operators, the newest first. The last 1,000 entries are kept. */
  async audit(limit = 100): Promise<readonly AuditEntry[]> {
    return (await this.#engine.presented(this.#audited(MOST_NOTES))).slice(0, limit);
  }

  /** The instances, as they reply now. They hold no key of this name. */
  async #asked(): Promise<readonly FoundInstance[]> {
    const { presence, store } = this.#parts;
    const found = await this.#engine.presented(store.admin.instances());
    return presence.afterAsking(found, await presence.ask(found, { about: 'key', key: '' }));
  }

  /** Each key once, with what the store has of it. */
  async *#found(prefix: string, given?: readonly string[]): AsyncGenerator<FoundKey> {
    const seen = new Set<string>();
    for await (const keys of given === undefined
      ? this.#parts.store.admin.keys(prefix)
      : [given.filter((key) => key.startsWith(prefix))]) {
      const fresh = [...new Set(keys)].filter((key) => !seen.has(key));
      for (const key of fresh) seen.add(key);
      for (let i = 0; i < fresh.length; i += LOOKED_AT_ONCE)
        yield* await this.#parts.store.admin.look(fresh.slice(i, i + LOOKED_AT_ONCE));
    }
  }

  async #heldBy(id: string): Promise<readonly Target[]> {
    const held: Target[] = [];
    for await (const found of this.#found(''))
      held.push(...targetsIn(found, ({ token }) => (makerIn(token) === id ? {} : undefined)));
    return held.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** Ends leases and records that; `undefined` if none of them was held any more. */
  async #end(
    action: AuditEntry['action'],
    targets: readonly Target[],
    intervention: Intervention,
  ): Promise<Done | undefined> {
    const endings = await this.#parts.interventions.end(targets, intervention);
    const keysThat = (status: Ending['status']): readonly string[] => [
      ...new Set(targets.flatMap(({ key }, i) => (endings[i]?.status === status ? [key] : []))),
    ];
    const [keys, unconfirmed] = [keysThat('ended'), keysThat('unavailable')];
    if (keys.length > 0) {
      const done = await this.#noted(action, keys, intervention);
      return unconfirmed.length > 0 ? { ...done, unconfirmed } : done;
    }
    if (unconfirmed.length === 0) return undefined;
    const nodes = endings.flatMap((each) => (each.status === 'unavailable' ? each.nodes : []));
    const facts = { operation: 'release', keys: unconfirmed, nodes } as const;
    throw this.#parts.present(new LockStoreUnavailableError(facts));
  }

  async #look(key: string): Promise<FoundKey> {
    this.#engine.checked(() => checkKey(key));
    const [found] = await this.#engine.presented(this.#parts.store.admin.look([key]));
    return found ?? { key, holders: [], line: [] };
  }

  /** The intervention is done, also if the audit log cannot be written. */
  async #noted(
    action: AuditEntry['action'],
    keys: readonly string[],
    { by, reason }: Intervention,
  ): Promise<Done> {
    const { runtime } = this.#parts;
    const at = new Date(runtime.now().wallMs);
    try {
      await this.#parts.store.admin.note(noteOf({ at, action, keys, by, reason }, runtime.uuid()));
      return { status: 'done', keys };
    } catch (error) {
      const notRecorded = error instanceof LockError ? error.detail : String(error);
      return { status: 'done', keys, notRecorded };
    }
  }

  async #audited(count: number): Promise<readonly AuditEntry[]> {
    const notes = await this.#parts.store.admin.notes(count);
    return notes.flatMap((note) => auditEntryIn(note) ?? []);
  }
}

const hotKeyOf = (
  { key, waitedMs, waits, refusals, waiting = 0, longestMs }: Contended,
  wallMs: number,
): HotKey => ({
  ...{ key, waitedMs, waits, refusals, waiting },
  ...(longestMs !== undefined && { since: new Date(wallMs - longestMs) }),
});

/** The leases of a key that are to end. */
const targetsIn = (
  { key, holders, fencingToken: lastToken }: FoundKey,
  seenAs: (holder: FoundHolder) => Partial<SeenHolder> | undefined,
): readonly Target[] =>
  holders.flatMap((holder) => {
    const seen = seenAs(holder);
    return seen === undefined ? [] : [{ key, holder, lastToken, fencingToken: seen.fencingToken }];
  });

/** @throws LockConfigurationError for a key without its holders, which JavaScript lets through */
function checkedSeen(lock: SeenLock): SeenLock {
  if (typeof (lock as Partial<SeenLock>).key === 'string' && Array.isArray(lock.holders))
    return lock;
  throw new LockConfigurationError(
    'A forced release needs the holders that you saw, so that it ends no later one. ' +
      "Write release(await admin.describe('order:42'), { reason: 'stuck since 3 am' }).",
  );
}

const ACTIONS: readonly unknown[] = ['release', 'release-instance', 'forget-once'];

/** As the store keeps it. Several masters have it, and by its id it is one entry. */
export const noteOf = ({ at, ...entry }: AuditEntry, id: string): string =>
  JSON.stringify({ id, at: at.getTime(), ...entry });

/** Every client that may write to the store can write any value: a value that is no entry is left out. */
export function auditEntryIn(note: string): AuditEntry | undefined {
  try {
    const { at, action, keys, by, reason } = JSON.parse(note) as Record<string, unknown>;
    const isEntry =
      isTime(at) && ACTIONS.includes(action) && isTexts(keys) && isTexts([by, reason]);
    if (!isEntry) return undefined;
    const known = { action, keys, by, reason } as Omit<AuditEntry, 'at'>;
    return { at: new Date(at as number), ...known };
  } catch {
    return undefined;
  }
}

/** What a `Date` can have. */
const isTime = (value: unknown): boolean => typeof value === 'number' && Math.abs(value) <= 8.64e15;

const isTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');
