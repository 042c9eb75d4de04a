import calculateSlot from 'cluster-key-slot';
import type {
  AcquireOutcome,
  AcquireRequest,
  ExtendOutcome,
  Held,
  InspectOutcome,
  LeaseReference,
  LeaseRequest,
  LockStore,
  ReleaseListener,
  ReleaseOutcome,
  Unavailable,
} from '../lock-store.js';
import { isOwnerToken } from '../owner-token.js';
import { keyNames, type KeyNames } from './key-names.js';
import { probe } from './probe.js';
import { RedisConnection } from './redis-connection.js';
import { RedisInbox } from './redis-inbox.js';
import { redisSource, type RedisLocation, type RedisSource } from './redis-source.js';
import { acquireScript } from './scripts/acquire.js';
import { extendScript } from './scripts/extend.js';
import { raiseFenceScript } from './scripts/raise-fence.js';
import { releaseScript } from './scripts/release.js';

export interface RedisLockStoreOptions {
  readonly redis: RedisLocation;
  readonly keyPrefix: string;
  /** The longest time that one request may take. */
  readonly nodeTimeoutMs: number;
  /** A fence outlives its lease by this; the largest step back of the server's clock that tokens survive. */
  readonly fenceKeepMs: number;
  /** Told what the operator should know. */
  readonly warn: (message: string) => void;
}

/** Nobody tells us of the release: the holder is software that knows nothing of inboxes, or our place in line was refused. */
const UNTOLD_CHECK_MS = 1_000;

/** One script blocks the server for as long as it runs. */
const KEYS_PER_SCRIPT = 500;

/** Locks in one Redis: standalone, behind Sentinel, or a Cluster. */
export class RedisLockStore implements LockStore {
  readonly #source: RedisSource;
  readonly #connection: RedisConnection;
  readonly #inbox: RedisInbox;
  readonly #prefix: string;
  readonly #nodeTimeoutMs: number;
  readonly #fenceKeepMs: number;
  readonly #warn: (message: string) => void;

  constructor(options: RedisLockStoreOptions) {
    this.#source = redisSource(options.redis);
    this.#connection = new RedisConnection(this.#source, options.warn);
    this.#inbox = new RedisInbox(
      this.#source,
      this.#connection,
      options.nodeTimeoutMs,
      options.warn,
    );
    this.#prefix = this.#source.keyPrefix + options.keyPrefix;
    this.#nodeTimeoutMs = options.nodeTimeoutMs;
    this.#fenceKeepMs = options.fenceKeepMs;
    this.#warn = options.warn;
  }

  async open(): Promise<void> {
    const { main } = keyNames(this.#prefix, 'probe');
    await probe(this.#connection, this.#source.name, main, this.#nodeTimeoutMs, this.#warn);
  }

  async acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    const granted: { readonly group: Group; readonly fencingToken: number }[] = [];
    let fencingToken = 0;
    for (const group of this.#groups(request.keys)) {
      const outcome = await this.#acquireGroup(group, request, fencingToken);
      if (outcome.status !== 'granted') {
        const undone = await Promise.all(
          granted.map((other) => this.#releaseGroup(other.group, request.token)),
        );
        // What could not be given back is an outage: callers clean up after those, and not after a refusal.
        const failure = undone.find((undoing) => undoing.status === 'unavailable') ?? outcome;
        return granted.length > 0 ? afterGrant(failure) : failure;
      }
      fencingToken = outcome.fencingToken;
      granted.push({ group, fencingToken });
    }
    const lower = granted.filter((other) => other.fencingToken < fencingToken);
    const raised = await Promise.all(
      lower.map(({ group }) => this.#raiseFence(group, request, fencingToken)),
    );
    const failure = raised.find((outcome) => outcome !== undefined);
    if (failure === undefined) return { status: 'granted', fencingToken };
    await Promise.all(granted.map(({ group }) => this.#releaseGroup(group, request.token)));
    return afterGrant(failure);
  }

  async extend(leases: readonly LeaseRequest[]): Promise<readonly ExtendOutcome[]> {
    const outcomes: ExtendOutcome[] = leases.map(() => ({ status: 'extended' }));
    const entries = leases.flatMap((lease, index) =>
      lease.keys.map((key) => ({
        ...this.#place(key),
        token: lease.token,
        ttlMs: lease.ttlMs,
        index,
      })),
    );
    const settle = (index: number, outcome: ExtendOutcome): void => {
      // A loss of one key is a loss of the lease, whatever became of the others.
      if (outcome.status !== 'extended' && outcomes[index]?.status !== 'lost')
        outcomes[index] = outcome;
    };
    await Promise.all(
      batches(entries).map(async (batch) => {
        const keys = batch.flatMap(({ names }) => [names.main, names.fence]);
        const args = batch.flatMap(({ token, ttlMs }) => [token, ttlMs]);
        const shortest = Math.min(...batch.map(({ ttlMs }) => ttlMs));
        const reply = await this.#run(extendScript, keys, [this.#fenceKeepMs, ...args], shortest);
        const answers = reply.status === 'answered' ? reply.value : undefined;
        batch.forEach(({ index }, position) => {
          if (reply.status === 'unavailable') settle(index, reply);
          else settle(index, this.#extended(Array.isArray(answers) ? answers[position] : answers));
        });
      }),
    );
    return outcomes;
  }

  async release(lease: LeaseReference): Promise<ReleaseOutcome> {
    const outcomes = await Promise.all(
      this.#groups(lease.keys).map((group) => this.#releaseGroup(group, lease.token)),
    );
    return (
      outcomes.find(({ status }) => status === 'unavailable') ??
      outcomes.find(({ status }) => status === 'not-held') ?? { status: 'released' }
    );
  }

  async inspect(key: string): Promise<InspectOutcome> {
    const { main } = keyNames(this.#prefix, key);
    const reply = await this.#connection.ask(this.#nodeTimeoutMs, ({ client }) =>
      client.pttl(main),
    );
    if (reply.status === 'unavailable') return reply;
    if (typeof reply.value !== 'number') return this.#connection.malformed(reply.value);
    if (reply.value === -2) return { status: 'free' };
    return { status: 'held', remainingMs: reply.value === -1 ? Infinity : reply.value };
  }

  forceRelease(key: string): Promise<ReleaseOutcome> {
    return this.#releaseGroup([keyNames(this.#prefix, key)], '');
  }

  async listen(
    listener: ReleaseListener,
    onDeaf: () => void = () => undefined,
  ): Promise<'listening' | 'polling'> {
    const open = await this.#inbox.open((name) => {
      if (name === undefined) listener();
      else if (name.startsWith(this.#prefix)) listener(name.slice(this.#prefix.length));
    }, onDeaf);
    return open ? 'listening' : 'polling';
  }

  async leave(key: string): Promise<void> {
    const { queue } = keyNames(this.#prefix, key);
    await this.#connection.ask(this.#nodeTimeoutMs, ({ client }) =>
      client.zrem(queue, this.#inbox.channel),
    );
  }

  close(): Promise<void> {
    this.#inbox.close();
    this.#connection.close();
    return Promise.resolve();
  }

  async #acquireGroup(
    group: Group,
    request: AcquireRequest,
    floor: number,
  ): Promise<AcquireOutcome> {
    const inbox = request.standInLine ? this.#inbox.channel : '';
    const args = [request.token, request.ttlMs, floor, this.#fenceKeepMs, inbox];
    const reply = await this.#run(acquireScript, allNames(group), args, request.ttlMs);
    if (reply.status === 'unavailable') return reply;
    if (!Array.isArray(reply.value)) return this.#connection.malformed(reply.value);
    const [granted, first, pttl, holder, standing] = reply.value as unknown[];
    if (granted === 1) return { status: 'granted', fencingToken: Number(first) };
    const busy = group[Number(first) - 1];
    if (granted !== 0 || busy === undefined) return this.#connection.malformed(reply.value);
    const willBeTold = isOwnerToken(String(holder)) && (standing === 1 || inbox === '');
    return held(busy.main.slice(this.#prefix.length), Number(pttl), willBeTold);
  }

  async #raiseFence(
    group: Group,
    request: AcquireRequest,
    fencingToken: number,
  ): Promise<Unavailable | undefined> {
    const keys = group.flatMap(({ main, fence }) => [main, fence]);
    const args = [request.token, fencingToken, request.ttlMs, this.#fenceKeepMs];
    const reply = await this.#run(raiseFenceScript, keys, args, request.ttlMs);
    if (reply.status === 'unavailable') return reply;
    if (reply.value === group.length) return undefined;
    return {
      ...this.#connection.malformed('lost while the other keys were acquired'),
      transient: true,
    };
  }

  async #releaseGroup(group: Group, token: string): Promise<ReleaseOutcome> {
    const args = [token, this.#source.isCluster ? '1' : ''];
    const reply = await this.#run(releaseScript, allNames(group), args, this.#nodeTimeoutMs);
    if (reply.status === 'unavailable') return reply;
    if (typeof reply.value !== 'number') return this.#connection.malformed(reply.value);
    return { status: reply.value === group.length ? 'released' : 'not-held' };
  }

  #extended(answer: unknown): ExtendOutcome {
    if (answer === 1) return { status: 'extended' };
    if (answer === 0) return { status: 'lost', reason: 'released-elsewhere' };
    if (answer === -1) return { status: 'lost', reason: 'stolen' };
    return this.#connection.malformed(answer);
  }

  #run(
    script: Parameters<RedisConnection['run']>[0],
    keys: readonly string[],
    args: readonly (string | number)[],
    ttlMs: number,
  ): ReturnType<RedisConnection['run']> {
    return this.#connection.run(script, keys, args, Math.min(this.#nodeTimeoutMs, ttlMs));
  }

  #place(key: string): { readonly names: KeyNames; readonly slot: number } {
    const names = keyNames(this.#prefix, key);
    return { names, slot: this.#source.isCluster ? calculateSlot(names.main) : 0 };
  }

  /** What one script can take at once: everything, or on a Cluster the keys of one slot; in the order of the keys. */
  #groups(keys: readonly string[]): readonly Group[] {
    const groups = new Map<number, KeyNames[]>();
    for (const key of keys) {
      const { names, slot } = this.#place(key);
      const group = groups.get(slot);
      if (group === undefined) groups.set(slot, [names]);
      else group.push(names);
    }
    return [...groups.values()];
  }
}

type Group = readonly KeyNames[];

/** This request may never have left the process, but one before it did. */
function afterGrant<Outcome extends AcquireOutcome>(outcome: Outcome): Outcome {
  const { sent: _, ...rest } = outcome as Outcome & Partial<Unavailable>;
  return rest as Outcome;
}

const allNames = (group: Group): string[] =>
  group.flatMap(({ main, fence, queue }) => [main, fence, queue]);

function held(key: string, pttl: number, willBeTold: boolean): Held {
  const remainingMs = pttl < 0 ? Infinity : pttl;
  const checkAgainMs = willBeTold ? remainingMs : UNTOLD_CHECK_MS;
  return { status: 'held', key, remainingMs, checkAgainMs: Math.min(checkAgainMs, remainingMs) };
}

function batches<T extends { readonly slot: number }>(
  entries: readonly T[],
): readonly (readonly T[])[] {
  const result: T[][] = [];
  const open = new Map<number, T[]>();
  for (const entry of entries) {
    let batch = open.get(entry.slot);
    if (batch === undefined || batch.length === KEYS_PER_SCRIPT) {
      batch = [];
      open.set(entry.slot, batch);
      result.push(batch);
    }
    batch.push(entry);
  }
  return result;
}
