import calculateSlot from 'cluster-key-slot';
import { within } from '../../../time/clock.js';
import type { Runtime } from '../../../time/runtime.js';
import {
  OPEN_STORES,
  type NodeProblem,
  type ObservedNode,
  type ObservedStore,
} from '../../../observe/nodes.js';
import { Scheduler } from '../../../time/scheduler.js';
import { CleanUp, type LeftOver } from '../../clean-up.js';
import type {
  EndingLease,
  LeaseRequest,
  LinePlace,
  LockStore,
  ReleaseListener,
  ReleaseOutcome,
  SetLimitOutcome,
  StoreHealth,
  TransferOutcome,
  TransferRequest,
  WriteOutcome,
  WriteRequest,
} from '../../lock-store.js';
import type { OnceReference, OnceStore } from '../../once-store.js';
import type { RedisSource } from '../client/redis-client.js';
import type { Vote } from '../scripts/acquire.js';
import { guardedScript } from '../scripts/guarded.js';
import { hashTagOf } from '../scripts/key-names.js';
import { beginScript, endScript, type EndCall } from '../scripts/once.js';
import { setLimitScript } from '../scripts/set-limit.js';
import { transferScript } from '../scripts/transfer.js';
import { acquireAt, afterGrant, inQuarantine, type AskedLock } from './acquire.js';
import { extendAt, type RenewalVote, type Restoration } from './extend.js';
import { NodeLooks } from './node-looks.js';
import type { Until } from './node-watch.js';
import { RedisAdminStore } from './redis-admin-store.js';
import { releaseAt, releaseInSlot } from './release.js';
import { Server, type KeysOfSlot, type RedisNodeOptions } from './server.js';

/** How long closing waits for a node that does not answer. */
const GIVE_BACK_MS = 1_000;

/** A place in line outlives the lease that is waited for: it stands as long as its process listens. */
const LEAVES_FOR_MS = 60_000;

/** Locks on one Redis: standalone, behind Sentinel, or a Cluster, which takes several keys slot by slot. Its reply decides. */
export class RedisStore extends Server implements LockStore, ObservedStore, ObservedNode {
  override readonly looks: NodeLooks = new NodeLooks(this);
  readonly admin = new RedisAdminStore([this]);
  readonly once: OnceStore = onceAt(this);
  #listener: ReleaseListener = () => undefined;
  /** What requests without a reply may have left there. */
  readonly #leftOvers: CleanUp;

  constructor(
    source: RedisSource,
    options: RedisNodeOptions,
    runtime: Runtime,
    place: 'alone' | 'in a quorum' = 'alone',
  ) {
    super(source, options, new Scheduler(runtime), place);
    const store = {
      release: ({ leaves, ...lease }: LeftOver, lastToken?: number, keepMs?: number) =>
        releaseAt(this, lease, { lastToken, keepMs, leaves }),
    };
    const onRemoved = (keys: readonly string[]): void => {
      for (const key of keys) this.#listener(key);
    };
    this.#leftOvers = new CleanUp({ store, scheduler: this.scheduler, onRemoved });
  }

  get isThere(): boolean {
    return this.connection.isThere;
  }

  /** The server is reachable, and nothing is known that keeps it from granting locks. */
  get isWell(): boolean {
    return this.isThere && this.watch.isWell;
  }

  get nodes(): readonly ObservedNode[] {
    return [this];
  }

  get nodesMissing(): number {
    return this.isWell && !this.isSilent ? 0 : 1;
  }

  get problems(): Readonly<Record<NodeProblem, boolean>> {
    const { connection, watch, inbox } = this;
    const answers = this.isThere && !this.isSilent;
    return {
      unreachable: !answers && !connection.isRefused,
      refusing: connection.isRefused || (answers && !watch.isWell && !watch.isQuarantined),
      quarantined: answers && watch.isQuarantined,
      'no-messages': answers && inbox.isDeaf,
    };
  }

  get clockOffsetMs(): number | undefined {
    // The masters of a Cluster have a clock each.
    return this.connection.client.kind === 'single' ? this.clock.offsetMs() : undefined;
  }

  /** The server owes an answer whose time is up. */
  get isSilent(): boolean {
    return this.connection.isSilent;
  }

  /** @throws LockConfigurationError for a server that is too old, and for options that make the restart guard impossible */
  async open(): Promise<void> {
    try {
      OPEN_STORES.add(this);
      await openAll([this], this.options);
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  acquire(request: AskedLock): Promise<Vote> {
    return acquireAt(this, request);
  }

  extend(
    leases: readonly Restoration[],
    onVote?: (index: number, vote: RenewalVote) => void,
  ): Promise<readonly RenewalVote[]> {
    return extendAt(this, leases, onVote);
  }

  release(lease: EndingLease, lastToken?: number, keepMs = 0): Promise<ReleaseOutcome> {
    const { isPlain } = lease;
    return releaseAt(this, lease, { lastToken, keepMs, isPlain, whileDown: 'waits' });
  }

  /** Removes what a request without a reply may have left. */
  remove({ keys, token, ttlMs }: LeaseRequest, keepMs = 0): void {
    this.#leftOvers.add({ keys, token, ttlMs }, keepMs);
  }

  async listen(
    listener: ReleaseListener,
    onDeaf: () => void = () => undefined,
  ): Promise<'listening' | 'polling'> {
    this.#listener = listener;
    const isHeard = await this.inbox.open((message) => {
      if (message === undefined) listener();
      else if (message.startsWith('{')) this.onMessage?.(message);
      else {
        const [, to, inMs, name] = CALL.exec(message) ?? [];
        if (to !== undefined && name?.startsWith(this.prefix) === true)
          listener(name.slice(this.prefix.length), { to, inMs: Number(inMs) });
      }
    }, onDeaf);
    return isHeard ? 'listening' : 'polling';
  }

  /** Leaves a line, and tries until the server replies: a place that stays behind is given keys that no caller takes. */
  async leave({ keys, token, ttlMs }: LeaseRequest, line: LinePlace): Promise<void> {
    const { status } = await releaseAt(this, { keys, token }, { leaves: line });
    if (status !== 'unavailable') return;
    this.#leftOvers.add({ keys, token, ttlMs: Math.max(ttlMs, LEAVES_FOR_MS), leaves: line });
  }

  transfer(request: TransferRequest): Promise<TransferOutcome> {
    return transferAt(this, request);
  }

  /** Runs commands of the application, as long as a lease holds its keys. */
  async write(request: WriteRequest): Promise<WriteOutcome> {
    const { client } = this.connection;
    const dataKeys = [...new Set(request.commands.flatMap((command) => client.keysIn(command)))];
    const problem = problemWith(this, request.keys, dataKeys);
    if (problem !== undefined) return { status: 'refused', problem };
    return this.ask(guardedScript, { ...request, dataKeys });
  }

  setLimit(key: string, limit: number | undefined): Promise<SetLimitOutcome> {
    return this.ask(setLimitScript, { keys: [key], limit, whileDown: 'waits' });
  }

  async health(withinMs?: number): Promise<StoreHealth> {
    const nodes = await this.looks.health(withinMs);
    const hasQuorum = nodes.every(
      ({ problem, quarantinedForMs }) => problem === undefined && quarantinedForMs === 0,
    );
    return { nodes, quorum: 1, hasQuorum };
  }

  override situation(until: Until): string {
    return this.isWell ? 'Locks are granted again.' : `Locks are refused (503) until ${until}.`;
  }

  /** Waits for what is on its way there, and tries one last time. What is left at a node that does not answer expires. */
  async close(): Promise<void> {
    OPEN_STORES.delete(this);
    await within(this.runtime, GIVE_BACK_MS, this.#giveBack());
    this.#leftOvers.close();
    this.disconnect();
    this.scheduler.toBackground();
  }

  async #giveBack(): Promise<void> {
    if (!this.isSilent) await this.releasing.settled();
    if (this.#leftOvers.size > 0 && !this.isSilent) await this.#leftOvers.finish();
  }
}

/** What scripts send to those in line (`notify` in `lua/includes/places.lua`): `<tail of the token, or id> <ms> <main key>`. */
const CALL = /^(\S+) (\d+) (.*)$/s;

/**
 * Connects to all of them, and looks at each.
 *
 * @throws LockConfigurationError for a server that is too old, and for options that make the restart guard impossible
 */
export async function openAll(
  nodes: readonly RedisStore[],
  { warn, restartGuard }: RedisNodeOptions,
): Promise<void> {
  const opened = await Promise.allSettled(nodes.map(({ looks }) => looks.open()));
  for (const { watch } of nodes) watch.started();
  for (const result of opened) if (result.status === 'rejected') throw result.reason;
  if (restartGuard?.bootstrap === true) {
    warn(
      '"restartGuard.bootstrap" is set: a server that has lost all its data passes for a new one. Leave it out after the first deployment.',
    );
  }
}

/** Replicas have to have these, where that is asked for. Without the others, the work would only be tried again, or count as tried. */
const TO_STAY: ReadonlySet<EndCall['what']> = new Set(['done', 'final']);

/** The records of work that is to be done once, at one node. */
export function onceAt(server: Pick<Server, 'ask'>): OnceStore {
  const end = (
    { key, token, owner }: OnceReference,
    step: Pick<EndCall, 'what' | 'attempt' | 'text' | 'lifeMs'>,
  ) => {
    const durability = TO_STAY.has(step.what) ? undefined : 'at once';
    return server.ask(endScript, { ...step, keys: [key], token, owner, durability });
  };
  return {
    begin: ({ key, token, owner, attempts, lifeMs, keepMs }) =>
      server.ask(beginScript, { keys: [key], token, owner, attempts, lifeMs, keepMs }),
    keep: ({ lifeMs, attempt, ...reference }) => end(reference, { what: 'keep', lifeMs, attempt }),
    finish: ({ end: what, lifeMs, attempt, text, ...reference }) =>
      end(reference, { what, lifeMs, attempt, text }),
  };
}

/**
 * Gives a lease another owner token at one node. Keys in several slots go one slot after the other, in one order: of
 * two callers that attach one lease, the one that has the first slot gets it.
 */
async function transferAt(server: Server, request: TransferRequest): Promise<TransferOutcome> {
  const done: KeysOfSlot[] = [];
  for (const keys of server.bySlot(request.keys)) {
    const answer = await server.ask(transferScript, { ...request, keys, whileDown: 'waits' });
    // Such a refusal leaves nothing to put back.
    const outcome: TransferOutcome =
      answer.status === 'quarantined' ? { ...inQuarantine(server, answer), sent: false } : answer;
    if (outcome.status === 'lost' && done.length > 0) {
      // A lease that has lost a key is lost: no caller has the keys of it that were taken.
      const undone = await Promise.all(
        done.map((taken) => releaseInSlot(server, { keys: taken, token: request.to })),
      );
      return undone.find((undoing) => undoing.status === 'unavailable') ?? outcome;
    }
    if (outcome.status === 'unavailable') return done.length > 0 ? afterGrant(outcome) : outcome;
    if (outcome.status === 'lost') return outcome;
    done.push(keys);
  }
  return { status: 'transferred' };
}

function problemWith(
  server: Server,
  keys: readonly string[],
  dataKeys: readonly string[],
): string | undefined {
  if (server.bySlot(keys).length > 1)
    return (
      'The keys of the lock lie in several slots of the Cluster, and no step can check all of them. Give "keyPrefix" a hash tag, such as ' +
      "'{app}:', or lock one key."
    );
  const names = keys.map(server.names);
  const ours = new Set(names.flatMap((each) => Object.values(each) as string[]));
  const own = dataKeys.find((key) => ours.has(key));
  if (own !== undefined) return `"${own}" is a key of the lock itself. Use another name for data.`;
  const [first] = names;
  if (server.connection.client.kind === 'single' || first === undefined) return undefined;
  const slot = calculateSlot(first.main);
  const elsewhere = dataKeys.find((key) => calculateSlot(key) !== slot);
  if (elsewhere === undefined) return undefined;
  return (
    `"${elsewhere}" does not lie in the slot of the lock, and on a Cluster one step cannot see both. Put the hash tag of the ` +
    `lock into its name: "{${hashTagOf(first)}}:…".`
  );
}
