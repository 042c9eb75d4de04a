import type { Cluster } from 'ioredis';
import type {
  AcquireRequest,
  LeaseReference,
  LeaseRequest,
  LinePlace,
  NodeHealth,
  ReleaseListener,
  ReleaseOutcome,
  Unavailable,
} from '../../lock-store.js';
import { holdModeOf, isOwnerToken, MARK, newOwnerToken, turnsOf } from '../../owner-token.js';
import {
  AcknowledgedWrites,
  type AcknowledgedReply,
  type ReplicaOptions,
  type WriteRequest,
} from './acknowledged-writes.js';
import { batches, KeySlots, type Group } from './key-groups.js';
import { epochName, hashTagOf, isOneSlot, keyPatterns, trialKey } from './key-names.js';
import {
  renewalVote,
  type KeyAnswer,
  type RenewalVote,
  type Restoration,
  type InspectVote,
  type Vote,
} from './node-answers.js';
import { NodeClock } from './node-clock.js';
import { nodeHealth } from './node-health.js';
import { NodeWatch, type Until } from './node-watch.js';
import type { Scheduler } from '../../../time/scheduler.js';
import { NodeOnce, type Durability } from './node-once.js';
import { probe, type Finding, type RestartGuard } from './probe.js';
import { RedisConnection, type WhileDown } from '../client/redis-connection.js';
import { RedisInbox } from '../wakeups/redis-inbox.js';
import { redisSource, type RedisLocation, type RedisSource } from '../client/redis-source.js';
import { acquireScript } from '../scripts/acquire.js';
import { extendScript, type KeyRenewal } from '../scripts/extend.js';
import type { LineMode } from '../scripts/line.js';
import { onceScript, type OnceCall } from '../scripts/once.js';
import { raiseFenceScript } from '../scripts/raise-fence.js';
import { releaseScript } from '../scripts/release.js';
import type { Script, ScriptCall } from '../scripts/script.js';

export interface RedisNodeOptions {
  readonly keyPrefix: string;
  /** The longest time that one request may take. */
  readonly nodeTimeoutMs: number;
  /** A fence outlives its lease by this; the largest step back of the server's clock that tokens survive. */
  readonly fenceKeepMs: number;
  readonly restartGuard?: RestartGuard | undefined;
  readonly replicas?: ReplicaOptions | undefined;
  /** How many fencing tokens to reserve with each lease. */
  readonly turns: number;
  /** Told what the operator should know. */
  readonly warn: (message: string) => void;
}

/** What a node has to know of the others. */
export interface QuorumOfNode {
  readonly scheduler: Scheduler;
  /** Whether it decides alone who is next. */
  readonly isOnly: boolean;
  /** What the nodes that are there mean for locks, and what ends it when locks are refused. */
  readonly situation: (until: Until) => string;
  /** Told that the node has found out which server is there now, before it asks that for anything else. */
  readonly onLook: () => void;
}

/** How a lease is given back. */
export interface ReleaseManner {
  /**
   * Who is told, if not whoever it may concern. Nobody: whom this vote refused has a reason of its own to look again. Only those who came
   * before, because it goes on standing in line.
   */
  readonly wakes?: 'nobody' | 'older';
  /** Nothing is given back, and only the line is left. */
  readonly only?: 'line';
  /** The last fencing token that was used under it. */
  readonly lastToken?: number | undefined;
  /** The line that it leaves at the same time. */
  readonly leaves?: LinePlace;
  /** For so long the keys stay taken. */
  readonly keepMs?: number | undefined;
  /** Default `'fails'`: whoever gives back what is left of a request tries again later. */
  readonly whileDown?: WhileDown;
}

/** Nobody tells us of the release: the holder is software that knows nothing of inboxes, or our place in line was refused. */
const UNTOLD_CHECK_MS = 1_000;

/** How the marker begins that stands for all who hold a key together. */
const TOGETHER = `${MARK}:`;

/** How long a key waits for the one in line that it was given to: a process that is frozen costs so much. */
const LONGEST_CLAIM_MS = 1_000;

/**
 * One of the places that vote on a lock: a standalone Redis, one behind Sentinel, or a Cluster, which takes several keys slot by
 * slot. It says what this one place says, and knows nothing of majorities.
 */
export class RedisNode {
  /** What it knows of work that is to be done once. */
  readonly once: NodeOnce;
  readonly #options: RedisNodeOptions;
  readonly #source: RedisSource;
  readonly #connection: RedisConnection;
  readonly #acknowledged: AcknowledgedWrites | undefined;
  readonly #inbox: RedisInbox;
  readonly #scheduler: Scheduler;
  readonly #clock: NodeClock;
  readonly #prefix: string;
  readonly #slots: KeySlots;
  /** Where the restart guard keeps its account. */
  readonly #epoch: string;
  readonly #watch: NodeWatch;
  readonly #lineMode: LineMode;
  /** Whether keys that it has lost may be put back by renewals. */
  readonly #putsBack: boolean;
  /** Requests for locks on their way, by token. */
  readonly #acquiring = new Map<string, Promise<unknown>>();
  /** The first look: until it is over, nobody else may find a new server and take it for one that forgot. */
  #opening: Promise<unknown> | undefined;
  /** The id of the run that its server was in when it was connected to last, where it tells. */
  #run: string | undefined;
  /** The node that it is the same server as. */
  #twin: string | undefined;
  /** Where a request was answered with an error: of a Cluster, the master of that slot is looked at. */
  #doubtedSlot: number | undefined;
  /** Names the trials of this node. */
  readonly #trialName: string;
  /** So many grants were tried that nobody asked for. */
  #trials = 0;

  constructor(location: RedisLocation, options: RedisNodeOptions, quorum: QuorumOfNode) {
    const { nodeTimeoutMs, replicas, warn } = options;
    const { scheduler } = quorum;
    this.#options = options;
    this.#scheduler = scheduler;
    this.#clock = new NodeClock(scheduler.runtime);
    this.#trialName = scheduler.runtime.uuid();
    this.#source = redisSource(location, scheduler.runtime);
    this.#connection = new RedisConnection(this.#source, {
      scheduler,
      // Of several, no server may have two votes, not even for the moment until it is found out.
      readsRun: !quorum.isOnly,
      onLost: () => {
        this.#watch.lost();
      },
      onThere: (run) => {
        this.#run = run;
        this.#doubtedSlot = undefined;
        quorum.onLook();
        this.#inbox.check();
        this.#watch.connected();
      },
      onRefused: (problem) => {
        this.#watch.refused(problem);
      },
    });
    this.#watch = new NodeWatch({
      scheduler,
      name: this.name,
      situation: quorum.situation,
      warn,
      look: () => this.#look('later'),
    });
    this.#acknowledged = replicas && new AcknowledgedWrites(this.#connection, replicas);
    this.#prefix = this.#source.keyPrefix + options.keyPrefix;
    this.#slots = new KeySlots(this.#prefix, this.#source.isCluster);
    this.#epoch = epochName(this.#prefix);
    this.#putsBack = !quorum.isOnly || options.restartGuard !== undefined;
    this.#lineMode = quorum.isOnly ? (this.#source.isCluster ? 'cluster' : 'standalone') : 'quorum';
    const isSharded = this.#lineMode === 'cluster' && 'ssubscribe' in this.#connection.client;
    this.#inbox = new RedisInbox({
      source: this.#source,
      connection: this.#connection,
      scheduler,
      timeLimitMs: nodeTimeoutMs,
      warn,
      kind: isSharded ? 'sharded' : 'plain',
    });
    this.once = new NodeOnce({
      run: (key, call, durability) => this.#runOnce(key, call, durability),
      malformed: (value) => this.#connection.malformed(value),
    });
  }

  /** `host:port`. */
  get name(): string {
    return this.#source.name;
  }

  get isThere(): boolean {
    return this.#connection.isThere;
  }

  /** It is there, and nothing is known that keeps it from granting locks. */
  get isWell(): boolean {
    return this.isThere && this.#watch.isWell;
  }

  /** It is there, and grants no locks yet, because it may have forgotten leases. */
  get isQuarantined(): boolean {
    return this.isThere && this.#watch.isQuarantined;
  }

  /** The id of the run that its server was in when it was connected to last, where it tells and there are several nodes. */
  get run(): string | undefined {
    return this.#run;
  }

  /** It does not vote as long as it is the same server as another node. */
  setAside(twin: string | undefined): void {
    if (twin !== undefined && twin !== this.#twin) {
      this.#options.warn(
        `Redis at ${this.name} is the same server as ${twin}: it has one vote, not two.`,
      );
    }
    this.#twin = twin;
    this.#connection.setAside(twin && `is the same server as ${twin}`);
  }

  /** It owes an answer whose time is up. */
  get isSilent(): boolean {
    return this.#connection.isSilent;
  }

  /** What its clock will show when a message sent now arrives. */
  clockOnArrivalUs(): number | undefined {
    return this.#clock.onArrivalUs();
  }

  /**
   * Connects, and finds out what the operator should know of how the node is: said when `opened` is called.
   *
   * @throws LockConfigurationError for what makes the restart guard impossible
   */
  async open(): Promise<void> {
    this.#watch.starts();
    const looking = this.#look('start');
    this.#opening = looking;
    try {
      this.#watch.found(await looking, 'start');
    } finally {
      this.#opening = undefined;
    }
  }

  /** All nodes have been opened, or could not be. */
  opened(): void {
    this.#watch.started();
  }

  acquire(request: AcquireRequest, proposal: number): Promise<Vote> {
    if (this.#opening !== undefined) {
      const again = (): Promise<Vote> => this.acquire(request, proposal);
      return this.#opening.then(again, again);
    }
    const { token } = request;
    const acquiring = this.#acquire(request, proposal).then((vote) => {
      this.#acquiring.delete(token);
      return vote;
    });
    this.#acquiring.set(token, acquiring);
    return acquiring;
  }

  /** Raises the fences of a lease that this node granted. Answers why not, where it could not. */
  async raiseFence(lease: LeaseRequest, fencingToken: number): Promise<Unavailable | undefined> {
    const outcomes = await Promise.all(
      this.#slots.groups(lease.keys).map((group) => this.#raiseFence(group, lease, fencingToken)),
    );
    return outcomes.find((outcome) => outcome !== undefined);
  }

  async extend(leases: readonly Restoration[]): Promise<readonly RenewalVote[]> {
    const serverUs = this.#clock.atLeastUs();
    const entries = leases.flatMap((lease) =>
      lease.keys.map((key, position) => ({ lease, position, slot: this.#slots.slot(key), key })),
    );
    const answers = new Map<Restoration, KeyAnswer[]>(leases.map((lease) => [lease, []]));
    await Promise.all(
      batches(entries).map(async (batch) => {
        const renewals = batch.map(({ lease, position, key }) => ({
          names: this.#slots.names(key),
          token: lease.token,
          ttlMs: lease.ttlMs,
          fencingToken: lease.fencingToken,
          sureUntilUs: serverUs === undefined ? 0 : Math.floor(serverUs + lease.validForMs * 1_000),
          expectedFence: lease.expectedFences?.[position],
        }));
        const keyAnswers = await this.#extendBatch(batch[0].slot, renewals);
        batch.forEach(({ lease, position }, index) => {
          const ofLease = answers.get(lease);
          if (ofLease !== undefined) ofLease[position] = keyAnswers(index);
        });
      }),
    );
    return leases.map((lease) => renewalVote(answers.get(lease) ?? []));
  }

  /** Says of each renewal, by its position, what became of it. */
  async #extendBatch(
    slot: number,
    renewals: readonly KeyRenewal[],
  ): Promise<(index: number) => KeyAnswer> {
    const { fenceKeepMs, restartGuard, turns } = this.#options;
    const call = extendScript.encode({
      renewals,
      epoch: this.#guardsAt,
      fenceKeepMs,
      maxTtlMs: restartGuard?.maxTtlMs,
      lineMode: this.#lineMode,
      turns,
    });
    const sentAt = this.#sentAt();
    const ttlMs = Math.max(...renewals.map((renewal) => renewal.ttlMs));
    const reply = await this.#write(slot, this.#request(extendScript, call, ttlMs, 'waits'));
    this.#doubtAfter(reply, slot);
    if (reply.status === 'unavailable') return () => reply;
    const answer = extendScript.decode(reply.value);
    if (answer.status === 'malformed') return () => this.#connection.malformed(answer.reply);
    this.#learn(answer.clockUs, sentAt);
    return (index) => {
      const key = answer.keys[index];
      if (key === undefined) return this.#connection.malformed(reply.value);
      if (key.status === 'malformed') return this.#connection.malformed(key.reply);
      return key.status === 'extended' ? (reply.shortfall ?? key) : key;
    };
  }

  /**
   * Also what a request on its way may yet take: it can be overtaken, between two slots, or when the server did not know the script.
   */
  release(lease: LeaseReference, how: ReleaseManner = {}): Promise<ReleaseOutcome> {
    const acquiring = this.#acquiring.get(lease.token);
    const releasing = this.#release(lease, how);
    if (acquiring === undefined) return releasing;
    return releasing.then(async (outcome) => {
      if (outcome.status !== 'not-held') return outcome;
      await acquiring;
      return this.#release(lease, how);
    });
  }

  /** Ends whoever's lease. */
  forceRelease(key: string): Promise<ReleaseOutcome> {
    return this.release({ keys: [key], token: '' }, { whileDown: 'waits' });
  }

  async inspect(key: string): Promise<InspectVote> {
    const { main, holders } = this.#slots.names(key);
    const reply = await this.#connection.ask(
      this.#options.nodeTimeoutMs,
      ({ client }) =>
        // What is no text is no lock of anybody's, but it is in the way of one.
        Promise.all([
          client.pttl(main),
          client.get(main).catch(() => 'no lock'),
          client.pttl(holders),
        ]),
      'waits',
    );
    if (reply.status === 'unavailable') return reply;
    const [pttl, holder, together] = listOf(reply.value);
    if (typeof pttl !== 'number' || (holder !== null && typeof holder !== 'string'))
      return this.#connection.malformed(reply.value);
    // Those who hold it together are one holder to those who count votes; somebody may have deleted their marker.
    if (Number(together) > 0 && (holder === null || holder.startsWith(TOGETHER)))
      return { status: 'held', holder: TOGETHER, remainingMs: Number(together) };
    if (pttl === -2 || holder === null) return { status: 'free' };
    return { status: 'held', holder, remainingMs: pttl < 0 ? Infinity : pttl };
  }

  /** Whether releases are reported from now on. */
  listen(onCall: ReleaseListener, onDeaf: () => void): Promise<boolean> {
    return this.#inbox.open((message) => {
      const [, to, inMs, name] = /^(\S+) (\d+) (.*)$/s.exec(message ?? '') ?? [];
      if (message === undefined) onCall();
      else if (to !== undefined && name?.startsWith(this.#prefix))
        onCall(name.slice(this.#prefix.length), { to, inMs: Number(inMs) });
    }, onDeaf);
  }

  async leave(lease: LeaseRequest, line: LinePlace): Promise<void> {
    await this.release(lease, { leaves: line });
  }

  /** One for each of its masters. */
  health(): Promise<readonly NodeHealth[]> {
    const { nodeTimeoutMs: timeLimitMs, restartGuard, replicas } = this.#options;
    return nodeHealth(this.#connection, {
      name: this.name,
      epoch: this.#epoch,
      twin: this.#twin,
      clock: this.#scheduler.runtime,
      timeLimitMs,
      restartGuard,
      replicas,
      tryGranting: (serves) => this.#tryGranting(serves),
    });
  }

  close(): void {
    this.#watch.close();
    this.#inbox.close();
    this.#connection.close();
  }

  async #runOnce(key: string, call: OnceCall, durability: Durability): Promise<AcknowledgedReply> {
    const { nodeTimeoutMs } = this.#options;
    const slot = this.#slots.slot(key);
    const encoded = onceScript.encode(this.#slots.names(key), call);
    const reply = await (durability === 'acknowledged'
      ? this.#write(slot, this.#request(onceScript, encoded, nodeTimeoutMs))
      : this.#connection.run(onceScript, encoded, nodeTimeoutMs));
    this.#doubtAfter(reply, slot);
    return reply;
  }

  #acquire(request: AcquireRequest, proposal: number): Promise<Vote> {
    const groups = this.#slots.groups(request.keys);
    const [first, second] = groups;
    return first !== undefined && second === undefined
      ? this.#askGroup(first, request, proposal)
      : this.#acquireGroups(groups, request, proposal);
  }

  /** Of several slots: one after the other. Whoever is refused stands in line in all of them, and keeps nothing. */
  async #acquireGroups(
    groups: readonly Group[],
    request: AcquireRequest,
    proposal: number,
  ): Promise<Vote> {
    const granted: { readonly group: Group; readonly vote: Vote & { status: 'granted' } }[] = [];
    for (const group of groups) {
      const vote = await this.#askGroup(group, request, proposal);
      if (vote.status !== 'granted') {
        const others = groups.filter((other) => other !== group);
        const stands = await this.#standAt(others, request, vote);
        const undone = await Promise.all(
          // Where it stands, they stay kept for it: whoever is next there is not called before it.
          granted.map((other) =>
            this.#releaseGroup(other.group, request, {
              lastToken: other.vote.fencingToken,
              ...(stands && { wakes: 'older' }),
            }),
          ),
        );
        // What could not be given back is an outage: callers clean up after those, and not after a refusal.
        const failure = undone.find((undoing) => undoing.status === 'unavailable') ?? vote;
        return undone.length > 0 ? afterGrant(failure) : failure;
      }
      granted.push({ group, vote });
    }
    const fencingToken = Math.max(...granted.map(({ vote }) => vote.fencingToken));
    const lower = granted.filter(({ vote }) => vote.fencingToken < fencingToken);
    const raised = await Promise.all(
      lower.map(({ group }) => this.#raiseFence(group, request, fencingToken)),
    );
    const failure = raised.find((outcome) => outcome !== undefined);
    if (failure === undefined) {
      void this.#leaveLines(groups, request);
      const othersWait = granted.some(({ vote }) => vote.othersWait);
      return { status: 'granted', fencingToken, othersWait };
    }
    await Promise.all(granted.map(({ group }) => this.#releaseGroup(group, request)));
    return afterGrant(failure);
  }

  /** Where no script sees all keys, each has to be kept for whoever came first: answers whether they are. */
  async #standAt(groups: readonly Group[], request: AcquireRequest, vote: Vote): Promise<boolean> {
    const { line } = request;
    if (line === undefined || vote.status !== 'refused' || vote.ticket === undefined) return false;
    const standing = { ...request, line: { ...line, ticket: vote.ticket } };
    await Promise.all(
      groups.map(async (group) => {
        if (this.#inbox.channelAt(group.slot) === undefined)
          await this.#inbox.listenAt(group.slot, hashTagOf(group.names[0]));
        await this.#acquireGroup(group, standing, 0, 0);
      }),
    );
    return true;
  }

  /** It has them all: nothing has to be kept for it any more. Never rejects. */
  async #leaveLines(groups: readonly Group[], request: AcquireRequest): Promise<void> {
    const { line } = request;
    if (line?.ticket === undefined) return;
    await Promise.all(
      groups.map((group) => this.#releaseGroup(group, request, { leaves: line, only: 'line' })),
    );
  }

  /** Stands in line only where it is sure to be called. */
  #askGroup(group: Group, request: AcquireRequest, proposal: number): Promise<Vote> {
    const isHeard = this.#inbox.channelAt(group.slot) !== undefined;
    const asking = this.#acquireGroup(group, request, proposal);
    if (isHeard || request.line === undefined) return asking;
    return asking.then(async (vote) => {
      if (vote.status !== 'refused') return vote;
      await this.#inbox.listenAt(group.slot, hashTagOf(group.names[0]));
      return this.#acquireGroup(group, request, proposal);
    });
  }

  /** @param ttlMs 0: takes nothing, and only stands in line */
  async #acquireGroup(
    group: Group,
    request: AcquireRequest,
    proposal: number,
    ttlMs = request.ttlMs,
    fenceKeepMs = this.#options.fenceKeepMs,
  ): Promise<Vote> {
    const { restartGuard, turns } = this.#options;
    const member = this.#member(request, request.line, group);
    const call = acquireScript.encode({
      names: group.names,
      epoch: this.#guardsAt,
      token: request.token,
      ttlMs,
      fenceKeepMs,
      turns: turnsOf(request.token, turns),
      lineMode: this.#lineMode,
      member,
      ticket: request.line?.ticket,
      proposal,
      maxTtlMs: restartGuard?.maxTtlMs,
      joins: request.joins,
    });
    const sentAt = this.#sentAt();
    const reply = await this.#write(group.slot, this.#request(acquireScript, call, request.ttlMs));
    this.#doubtAfter(reply, group.slot);
    if (reply.status === 'unavailable') return reply;
    const answer = acquireScript.decode(reply.value);
    if (answer.status === 'malformed') return this.#connection.malformed(answer.reply);
    this.#learn(answer.clockUs, sentAt);
    if (answer.status === 'granted') {
      this.#watch.granted();
      const { fencingToken, othersWait, joined } = answer;
      return reply.shortfall ?? { status: 'granted', fencingToken, othersWait, joined };
    }
    if (answer.status === 'quarantined') return this.#inQuarantine(answer.leftUs);
    const { holder, remainingMs, ticket } = answer;
    const busy = group.names[answer.position - 1];
    if (busy === undefined) return this.#connection.malformed(reply.value);
    const willBeTold = isOwnerToken(holder) && (ticket !== undefined || member === '');
    return {
      status: 'refused',
      key: busy.main.slice(this.#prefix.length),
      holder,
      remainingMs,
      checkAgainMs: willBeTold ? remainingMs : Math.min(UNTOLD_CHECK_MS, remainingMs),
      // Of several nodes none decides who is next.
      ticket: this.#lineMode === 'quorum' ? undefined : ticket,
    };
  }

  async #raiseFence(
    { slot, names }: Group,
    lease: LeaseRequest,
    fencingToken: number,
  ): Promise<Unavailable | undefined> {
    const { turns, fenceKeepMs } = this.#options;
    const call = raiseFenceScript.encode({
      names,
      token: lease.token,
      // All that are reserved: the next grant has to be larger than the last of them.
      fencingToken: fencingToken + turnsOf(lease.token, turns) - 1,
      ttlMs: lease.ttlMs,
      fenceKeepMs,
    });
    const reply = await this.#write(slot, this.#request(raiseFenceScript, call, lease.ttlMs));
    if (reply.status === 'unavailable') return reply;
    const answer = raiseFenceScript.decode(reply.value);
    if (answer.status === 'malformed') return this.#connection.malformed(answer.reply);
    if (answer.raised === names.length) return reply.shortfall;
    return this.#connection.failure('error', 'lost while the others were asked');
  }

  #release(lease: LeaseReference, how: ReleaseManner): Promise<ReleaseOutcome> {
    const groups = this.#slots.groups(lease.keys);
    const [first, second] = groups;
    return first !== undefined && second === undefined
      ? this.#releaseGroup(first, lease, how)
      : this.#releaseGroups(groups, lease, how);
  }

  async #releaseGroups(
    groups: readonly Group[],
    lease: LeaseReference,
    how: ReleaseManner,
  ): Promise<ReleaseOutcome> {
    const outcomes = await Promise.all(
      groups.map((group) => this.#releaseGroup(group, lease, how)),
    );
    return (
      outcomes.find(({ status }) => status === 'unavailable') ??
      outcomes.find(({ status }) => status === 'not-held') ?? { status: 'released' }
    );
  }

  async #releaseGroup(
    group: Group,
    lease: LeaseReference,
    { wakes, only, lastToken, leaves, keepMs = 0, whileDown }: ReleaseManner = {},
  ): Promise<ReleaseOutcome> {
    const { nodeTimeoutMs, fenceKeepMs } = this.#options;
    const call = releaseScript.encode({
      names: group.names,
      token: lease.token,
      lineMode: this.#lineMode,
      // Of those who hold it together, another one may have used a larger one.
      lastToken: holdModeOf(lease.token) === 'exclusive' ? lastToken : undefined,
      fenceKeepMs: this.#putsBack ? fenceKeepMs : undefined,
      member: this.#member(lease, leaves, group),
      wakes,
      leaves: only,
      holdMs: keepMs,
    });
    const reply = await this.#connection.run(releaseScript, call, nodeTimeoutMs, whileDown);
    this.#doubtAfter(reply, group.slot);
    if (reply.status === 'unavailable') return reply;
    const answer = releaseScript.decode(reply.value);
    if (answer.status === 'malformed') return this.#connection.malformed(answer.reply);
    return { status: answer.released === group.names.length ? 'released' : 'not-held' };
  }

  /** A place in line, as scripts know it: the same for every request of one token, or over several nodes of one line. */
  #member({ token }: LeaseReference, line: LinePlace | undefined, group: Group): string {
    const channel = this.#inbox.channelAt(group.slot);
    if (line === undefined || channel === undefined) return '';
    if (this.#lineMode === 'quorum') return `${line.id} 0 ${channel}`;
    const claimMs = group.isAll ? Math.min(line.ttlMs, LONGEST_CLAIM_MS) : 0;
    const place = `${token} ${String(claimMs)} ${channel}`;
    const [{ queue }, second] = group.names;
    return group.isAll && second === undefined ? place : `${place}\n${queue}`;
  }

  /** Of a script that grants or renews: never later than its lease would end. */
  #request(script: Script, call: ScriptCall, ttlMs: number, whileDown?: WhileDown): WriteRequest {
    const timeLimitMs = Math.min(this.#options.nodeTimeoutMs, ttlMs);
    return { script, call, timeLimitMs, whileDown };
  }

  /** Only what enough replicas have counts, where that is asked for. */
  #write(slot: number, request: WriteRequest): Promise<AcknowledgedReply> {
    if (this.#acknowledged !== undefined) return this.#acknowledged.run(slot, request);
    const { script, call, timeLimitMs, whileDown } = request;
    return this.#connection.run(script, call, timeLimitMs, whileDown);
  }

  /** Now, where the server's clock counts for anything: for proposals to several nodes, and where keys may be put back. */
  #sentAt(): number | undefined {
    return this.#putsBack ? this.#scheduler.runtime.now().monotonicMs : undefined;
  }

  #learn(clockUs: number, sentAt: number | undefined): void {
    if (sentAt === undefined) return;
    this.#clock.learn(clockUs, sentAt, this.#scheduler.runtime.now().monotonicMs);
  }

  /** The key of the restart guard, if there is one. */
  get #guardsAt(): string | undefined {
    return this.#options.restartGuard === undefined ? undefined : this.#epoch;
  }

  #inQuarantine(us: number): Unavailable {
    const leftMs = Math.ceil(us / 1_000);
    this.#watch.quarantined(leftMs);
    return this.#connection.failure(
      'refused',
      `may have forgotten leases, and grants none for another ${String(leftMs)} ms ("restartGuard")`,
    );
  }

  /** Callers get 503 for an answer that is an error, and mostly nobody logs those: finds out whether all of them do. */
  #doubtAfter(reply: AcknowledgedReply, slot: number): void {
    const failed = reply.status === 'unavailable' ? reply : reply.shortfall;
    const kind = failed?.nodes[0]?.kind;
    // Outages are told by the connection, and the first look tells the rest.
    if (failed === undefined || kind === 'connection' || kind === 'timeout') return;
    if (!this.isWell || this.#opening !== undefined || this.#twin !== undefined) return;
    this.#doubtedSlot = slot;
    this.#watch.doubted(failed.transient ? 'for a moment' : 'for good');
  }

  /** Of a Cluster: whether a slot is at the master that was doubted last. */
  #isDoubted(slot: number): boolean {
    const { client } = this.#connection;
    if (!client.isCluster || this.#doubtedSlot === undefined) return true;
    const { slots } = client as Cluster;
    return slots[slot]?.[0] === slots[this.#doubtedSlot]?.[0];
  }

  #look(when: 'start' | 'later'): Promise<Finding> {
    const { nodeTimeoutMs, restartGuard, replicas, warn } = this.#options;
    return probe(this.#connection, {
      name: this.name,
      key: this.#slots.names(trialKey(this.#trialName, 0)).main,
      epoch: this.#epoch,
      keyPatterns: keyPatterns(this.#prefix),
      clock: this.#scheduler.runtime,
      nodeClock: this.#clock,
      timeLimitMs: nodeTimeoutMs,
      restartGuard,
      replicas,
      isStart: when === 'start',
      warn,
      tryGranting: () => this.#tryGranting((slot) => this.#isDoubted(slot)),
    });
  }

  /**
   * Does what a grant and a release do, with a lease that ends within `nodeTimeout` whatever happens, under a key that no caller can lock and
   * no other trial uses. Returns why that failed. Never rejects.
   *
   * @param serves whether the key is to be in that slot of a Cluster
   */
  async #tryGranting(
    serves: (slot: number) => boolean = () => true,
  ): Promise<Unavailable | undefined> {
    if (this.#twin !== undefined) return undefined; // it has no vote
    const nextKey = (): string => {
      this.#trials += 1;
      return trialKey(this.#trialName, this.#trials);
    };
    let key = nextKey();
    if (isOneSlot(this.#prefix) && !serves(this.#slots.slot(key))) return undefined; // no lock is there
    while (!serves(this.#slots.slot(key))) key = nextKey();
    const slot = this.#slots.slot(key);
    const group: Group = { slot, names: [this.#slots.names(key)], isAll: true };
    const { nodeTimeoutMs: ttlMs } = this.#options;
    const lease = { keys: [key], token: newOwnerToken(this.#scheduler.runtime), ttlMs };
    const vote = await this.#acquireGroup(group, lease, 0, ttlMs, 0);
    if (vote.status === 'unavailable') return vote;
    const lastToken = vote.status === 'granted' ? vote.fencingToken : undefined;
    const { fence } = this.#slots.names(key);
    const undone = await Promise.all([
      this.#releaseGroup(group, lease, { lastToken }),
      // Nothing of it is to be found later.
      this.#connection.look(ttlMs, ({ client }) => client.del(fence)),
    ]);
    return undone.find((outcome) => outcome.status === 'unavailable');
  }
}

/** This request may never have left the process, but one before it did. */
function afterGrant<Outcome extends Vote>(outcome: Outcome): Outcome {
  const { sent: _, ...rest } = outcome as Outcome & Partial<Unavailable>;
  return rest as Outcome;
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
