import calculateSlot from 'cluster-key-slot';
import { LockConfigurationError } from '../../../errors.js';
import { BriefMap } from '../../../collections/brief-map.js';
import { PendingTasks } from '../../../time/pending-tasks.js';
import type { Runtime } from '../../../time/runtime.js';
import { REQUEST } from '../../../observe/channels.js';
import type { Scheduler } from '../../../time/scheduler.js';
import { LONGEST_CLAIM_MS } from '../../claim.js';
import type { LeaseReference, LinePlace, Unavailable } from '../../lock-store.js';
import type { WhileDown } from '../client/readiness.js';
import type { RedisSource } from '../client/redis-client.js';
import { RedisConnection } from '../client/redis-connection.js';
import { isNotBegun } from '../client/reply-errors.js';
import { epochName, isOneSlot, keyNames, type KeyNames } from '../scripts/key-names.js';
import type { SharedVerb } from '../scripts/plain.js';
import { putsBack, type LineMode, type ServerFacts, type Verb } from '../scripts/script.js';
import { RedisInbox } from '../wakeups/redis-inbox.js';
import {
  AcknowledgedWrites,
  type AcknowledgedReply,
  type ReplicaOptions,
  type WriteRequest,
} from './acknowledged-writes.js';
import { SharedCalls } from './shared-calls.js';
import { NodeClock } from './node-clock.js';
import { NodeWatch, type Finding, type Until } from './node-watch.js';

export type RedisNodeOptions = ServerFacts['options'] & {
  readonly keyPrefix: string;
  /** The longest time that one request may take. */
  readonly nodeTimeoutMs: number;
  readonly replicas?: ReplicaOptions | undefined;
  /** Told what the operator should know. */
  readonly warn: (message: string) => void;
};

/** How a request is sent. */
interface Sending {
  /** The keys of one slot. */
  readonly keys: readonly string[];
  /** The TTL of the lease: the request is waited for no longer than that. */
  readonly ttlMs?: number;
  /** Default `'fails'`. */
  readonly whileDown?: WhileDown | undefined;
  /**
   * Default: only what enough replicas have counts, where that is asked for. `'at once'`: need not stay, and goes out ahead of whatever
   * is asked for later.
   */
  readonly durability?: 'at once' | undefined;
}

/** What one script can take at once: everything, or on a Cluster what is in one slot. */
type OfSlot<Item> = readonly [Item, ...Item[]];

export type KeysOfSlot = OfSlot<string>;

/** A request for a lock that is on its way. */
interface Acquiring {
  readonly done: Promise<unknown>;
  /** Whether the token of the request is released already. */
  isGivenUp: boolean;
}

/** One Redis: how it is asked, and what is known of it. */
export abstract class Server implements ServerFacts {
  /** `host:port`. */
  readonly name: string;
  readonly options: RedisNodeOptions;
  readonly scheduler: Scheduler;
  readonly runtime: Runtime;
  /** The application's and ours together. */
  readonly prefix: string;
  readonly names: (key: string) => KeyNames;
  readonly lineMode: LineMode;
  readonly epoch: string | undefined;
  readonly connection: RedisConnection;
  readonly inbox: RedisInbox;
  readonly watch: NodeWatch;
  readonly clock: NodeClock;
  /** The last request at these slots was an outage. They are asked first, so that no other key is held while they do not reply. */
  readonly doubtfulSlots = new Set<number>();
  /** Requests for locks on their way, by token. */
  readonly acquiring = new BriefMap<string, Acquiring>();
  /** Plain releases on their way: one that is not plain is followed by the whole one, which has to be sent before the connection ends. */
  readonly releasing = new PendingTasks();
  /** Finds out whether it grants locks, and why not: after a request that failed, whether all requests fail. */
  abstract readonly looks: {
    readonly opening: Promise<unknown> | undefined;
    look(when: 'start' | 'later'): Promise<Finding>;
    doubtAfter(failed: Unavailable): void;
  };
  /** Called with messages from other processes that call no waiter in line. */
  onMessage: ((text: string) => void) | undefined;
  /** The node that it is the same server as. */
  twin: string | undefined;
  /** The id of the run that its server was in when it was connected to last, where it tells and there are several nodes. */
  run: string | undefined;
  readonly #isCluster: boolean;
  /** The server's clock counts: for proposals to several nodes, and where keys may be put back. */
  readonly #readsClock: boolean;
  readonly #acknowledged: AcknowledgedWrites | undefined;
  readonly #shared: SharedCalls;

  constructor(
    source: RedisSource,
    options: RedisNodeOptions,
    scheduler: Scheduler,
    place: 'alone' | 'in a quorum',
  ) {
    const { nodeTimeoutMs: timeLimitMs, warn, restartGuard, replicas } = options;
    const isOnly = place === 'alone';
    const { name, isCluster, whyNoReplicas } = source;
    if (replicas !== undefined && whyNoReplicas !== undefined) {
      throw new LockConfigurationError(
        `Option "replicas" cannot be used with this client: ${whyNoReplicas}. Leave it out, or give "redis" a URL or another client.`,
      );
    }
    this.name = name;
    this.options = options;
    this.scheduler = scheduler;
    this.runtime = scheduler.runtime;
    this.prefix = source.keyPrefix + options.keyPrefix;
    this.names = keyNames(this.prefix);
    this.lineMode = !isOnly ? 'quorum' : isCluster ? 'cluster' : 'standalone';
    this.epoch = restartGuard && epochName(this.prefix);
    this.#isCluster = isCluster;
    this.#readsClock = putsBack(this);
    const connection = new RedisConnection(source, scheduler, {
      // No server may have two votes, not even for the moment until it is found out.
      readsRun: !isOnly,
      onLost: () => {
        this.watch.lost();
      },
      onThere: (run) => {
        this.run = run;
        this.identified();
        this.inbox.check();
        this.watch.connected();
      },
      onRefused: (problem) => {
        this.watch.refused(problem);
      },
      onSlots: () => {
        this.inbox.check();
      },
    });
    this.connection = connection;
    this.watch = new NodeWatch({
      ...{ scheduler, name, warn },
      situation: (until) => this.situation(until),
      look: () => this.looks.look('later'),
    });
    const isSharded = this.lineMode === 'cluster' && connection.client.hasShardedChannels;
    const kind = isSharded ? 'sharded' : 'plain';
    this.inbox = new RedisInbox({ source, connection, scheduler, timeLimitMs, warn, kind });
    this.clock = new NodeClock(this.runtime);
    // Keys of several slots cannot be given to one call.
    const isOneCall = connection.client.kind === 'single' || isOneSlot(this.prefix);
    this.#shared = new SharedCalls(connection, { runtime: this.runtime, timeLimitMs, isOneCall });
    this.#acknowledged = replicas && new AcknowledgedWrites(connection, replicas);
  }

  /** What the reachable nodes mean for locks, and what ends it when locks are refused. */
  abstract situation(until: Until): string;

  /** Called when it has identified its server, before any other request to that server. */
  protected identified(): void {
    return;
  }

  slot(key: string): number {
    return this.#isCluster ? calculateSlot(this.names(key).main) : 0;
  }

  /** Whether one script can take all of them. */
  isOneSlot({ length }: readonly unknown[]): boolean {
    return !this.#isCluster || length === 1;
  }

  /** The keys of each slot, or what belongs to them, in their order. */
  bySlot<Item = string>(
    items: readonly Item[],
    keyOf: (item: Item) => string = String,
  ): readonly OfSlot<Item>[] {
    if (this.isOneSlot(items)) return [items as OfSlot<Item>];
    const slots = new Map<number, [Item, ...Item[]]>();
    for (const item of items) {
      const slot = this.slot(keyOf(item));
      const known = slots.get(slot);
      if (known === undefined) slots.set(slot, [item]);
      else known.push(item);
    }
    return [...slots.values()];
  }

  /** Asks for one thing, of the keys of one slot. Never rejects. */
  ask<Request, Answer extends object>(
    verb: Verb<Request, Answer>,
    request: NoInfer<Request> & Sending,
  ): Promise<Answer | Unavailable> {
    const sentAt = this.#sentAt();
    const { nodeTimeoutMs } = this.options;
    const { keys, ttlMs = nodeTimeoutMs, whileDown, durability } = request;
    const call = verb.encode(request, this);
    const timeLimitMs = Math.min(nodeTimeoutMs, ttlMs);
    const write = { script: verb, call, timeLimitMs, whileDown };
    const sent =
      this.#acknowledged === undefined || durability === 'at once'
        ? this.#run(write)
        : this.#acknowledged.run(this.slot(keys[0] ?? ''), write);
    return sent.then((reply) => this.#answer(verb, request, reply, sentAt));
  }

  /**
   * Asks for the plain case of something, of one key. `undefined`: the whole script has to be asked, alone. Never rejects.
   *
   * @param ttlMs of the lease: the request is waited for no longer than that
   */
  share<Request, Answer extends object>(
    verb: SharedVerb<Request, Answer>,
    request: NoInfer<Request>,
    ttlMs = Infinity,
  ): Promise<Answer | Unavailable | undefined> {
    const sentAt = this.#sentAt();
    return this.#shared.run(verb, verb.encode(request, this), ttlMs).then((reply) => {
      if (reply.status === 'answered') {
        const answer = verb.decode(reply.value, request);
        if (sentAt !== undefined) this.#learn(answer, sentAt);
        return answer;
      }
      // An error of one request is that of all in its call.
      if (reply.nodes.every(({ kind, message }) => kind === 'error' && !isNotBegun(message)))
        return undefined;
      this.looks.doubtAfter(reply);
      return reply;
    });
  }

  #run(write: WriteRequest): Promise<AcknowledgedReply> {
    this.#shared.flush(); // nothing overtakes what was asked for before it
    const { script, call, timeLimitMs, whileDown } = write;
    return this.connection.run(script, call, timeLimitMs, whileDown);
  }

  #answer<Request, Answer extends { readonly clockUs?: number }>(
    verb: Verb<Request, Answer>,
    request: Request,
    reply: AcknowledgedReply,
    sentAt: number | undefined,
  ): Answer | Unavailable {
    const failed = reply.status === 'unavailable' ? reply : reply.shortfall;
    // Callers get 503 for it, and mostly none of them logs it.
    if (failed !== undefined) this.looks.doubtAfter(failed);
    if (reply.status === 'unavailable') return reply;
    const answer = verb.decode(reply.value, request, this, reply.shortfall);
    if (answer === undefined) return this.connection.malformed(reply.value);
    if (sentAt !== undefined) this.#learn(answer, sentAt);
    return answer;
  }

  /** A place in line, as scripts know it: the same for every request of one token, or over several nodes of one line. */
  member({ keys: [key = ''], token }: LeaseReference, line: LinePlace | undefined): string {
    if (line === undefined) return '';
    const channel = this.inbox.channelAt(this.slot(key));
    if (channel === undefined) return '';
    if (this.lineMode === 'quorum') return `${line.id} 0 ${channel}`;
    return `${token} ${String(Math.min(line.ttlMs, LONGEST_CLAIM_MS))} ${channel}`;
  }

  disconnect(): void {
    this.watch.close();
    this.inbox.close();
    // What waits for the end of this turn of the event loop is sent yet.
    this.#shared.flush();
    this.connection.close();
  }

  /** By the monotonic clock, in ms. */
  now(): number {
    return this.runtime.now().monotonicMs;
  }

  /** `undefined`: no one asks what the server's clock shows. */
  #sentAt(): number | undefined {
    return this.#readsClock || REQUEST.hasSubscribers ? this.now() : undefined;
  }

  #learn(answer: { readonly clockUs?: number } | undefined, sentAt: number): void {
    if (answer?.clockUs !== undefined) this.clock.learn(answer.clockUs, sentAt, this.now());
  }
}
