import { BriefMap } from '../../../collections/brief-map.js';
import type { Scheduler } from '../../../time/scheduler.js';
import type {
  AcquireRequest,
  LeaseReference,
  LeaseRequest,
  NodeHealth,
  ReleaseListener,
  ReleaseOutcome,
  SetLimitOutcome,
  TransferOutcome,
  TransferRequest,
  Unavailable,
  WriteOutcome,
  WriteRequest,
  LineCall,
} from '../../lock-store.js';
import type { RedisSource } from '../client/redis-client.js';
import { RedisConnection } from '../client/redis-connection.js';
import type { LineMode } from '../scripts/line.js';
import { RedisInbox } from '../wakeups/redis-inbox.js';
import { KeySlots } from './key-groups.js';
import { NodeAdmin } from './node-admin.js';
import { NodeAcquire } from './node-acquire.js';
import type { InspectVote, RenewalVote, Restoration, Vote } from './node-answers.js';
import { NodeClock } from './node-clock.js';
import { extendAt } from './node-extend.js';
import { inspectAt } from './node-inspect.js';
import { setLimitAt } from './node-limit.js';
import { NodeLooks } from './node-looks.js';
import { NodeOnce, onceRunnerOf } from './node-once.js';
import type { RedisNodeOptions, ReleaseManner } from './node-options.js';
import { NodeRelease } from './node-release.js';
import { NodeScripts } from './node-scripts.js';
import { transferAt } from './node-transfer.js';
import { NodeTrial } from './node-trial.js';
import { writeAt } from './node-write.js';
import { NodeWatch, type Until } from './node-watch.js';

/** What a node has to know of the others. */
interface QuorumOfNode {
  readonly scheduler: Scheduler;
  /** Whether it decides alone who is next. */
  readonly isOnly: boolean;
  /** What the reachable nodes mean for locks, and what ends it when locks are refused. */
  readonly situation: (until: Until) => string;
  /** Called when the node has identified its server, before any other request to that server. */
  readonly onLook: () => void;
}

/**
 * One of the places that vote on a lock: a standalone Redis, one behind Sentinel, or a Cluster, which takes several
 * keys slot by slot. It reports the vote of this one place, and knows nothing of majorities.
 */
export class RedisNode {
  /** What it knows of work that is to be done once. */
  readonly once: NodeOnce;
  /** What it tells operators. */
  readonly admin: NodeAdmin;
  /** Called with messages from other processes that call no waiter in line. */
  onMessage: ((text: string) => void) | undefined;
  readonly #source: RedisSource;
  readonly #connection: RedisConnection;
  readonly #inbox: RedisInbox;
  readonly #clock: NodeClock;
  readonly #watch: NodeWatch;
  readonly #scripts: NodeScripts;
  readonly #acquire: NodeAcquire;
  readonly #release: NodeRelease;
  readonly #looks: NodeLooks;
  /** Requests for locks on their way, by token. */
  readonly #acquiring = new BriefMap<string, Promise<unknown>>();
  /** The id of the run that its server was in when it was connected to last, where it tells. */
  #run: string | undefined;

  constructor(source: RedisSource, options: RedisNodeOptions, quorum: QuorumOfNode) {
    const { nodeTimeoutMs: timeLimitMs, warn } = options;
    const { scheduler, isOnly, situation, onLook } = quorum;
    const { runtime } = scheduler;
    this.#source = source;
    const connection = new RedisConnection(source, {
      scheduler,
      // No server may have two votes, not even for the moment until it is found out.
      readsRun: !isOnly,
      onLost: () => {
        this.#watch.lost();
      },
      onThere: (run) => {
        this.#run = run;
        onLook();
        this.#inbox.check();
        this.#watch.connected();
      },
      onRefused: (problem) => {
        this.#watch.refused(problem);
      },
      onSlots: () => {
        this.#inbox.check();
      },
    });
    const { name, isCluster } = source;
    const watch = new NodeWatch({
      ...{ scheduler, name, situation, warn },
      look: () => this.#looks.look('later'),
    });
    const lineMode = lineModeOf(source, isOnly ? 'only' : 'one of several');
    const isSharded = lineMode === 'cluster' && connection.client.hasShardedChannels;
    const kind = isSharded ? 'sharded' : 'plain';
    const inbox = new RedisInbox({ source, connection, scheduler, timeLimitMs, warn, kind });
    const prefix = source.keyPrefix + options.keyPrefix;
    const slots = new KeySlots(prefix, isCluster ? 'cluster' : 'single');
    const clock = new NodeClock(runtime);
    const scripts = new NodeScripts({
      ...{ options, prefix, lineMode, connection, slots, inbox, watch },
      ...{ clock, scheduler, runtime },
      onFailure: (failed) => {
        this.#looks.doubtAfter(failed);
      },
    });
    this.#connection = connection;
    this.#watch = watch;
    this.#inbox = inbox;
    this.#clock = clock;
    this.#scripts = scripts;
    this.#release = new NodeRelease(scripts);
    this.#acquire = new NodeAcquire(scripts, this.#release);
    const trial = new NodeTrial(scripts, { acquire: this.#acquire, release: this.#release });
    this.#looks = new NodeLooks(name, scripts, trial);
    this.once = new NodeOnce(onceRunnerOf(scripts));
    this.admin = new NodeAdmin(scripts);
  }

  /** `host:port`. */
  get name(): string {
    return this.#source.name;
  }

  get isThere(): boolean {
    return this.#connection.isThere;
  }

  /** The node is reachable, and nothing is known that keeps it from granting locks. */
  get isWell(): boolean {
    return this.isThere && this.#watch.isWell;
  }

  /** The node is reachable, and grants no locks yet, because it may have forgotten leases. */
  get isQuarantined(): boolean {
    return this.isThere && this.#watch.isQuarantined;
  }

  /** The id of the run that its server was in when it was connected to last, where it tells and there are several nodes. */
  get run(): string | undefined {
    return this.#run;
  }

  /** The node does not vote as long as it is the same server as another node. */
  setAside(twin: string | undefined): void {
    this.#looks.setAside(twin);
  }

  /** The node owes an answer whose time is up. */
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
  open(): Promise<void> {
    return this.#looks.open();
  }

  /** All nodes have been opened, or could not be. */
  opened(): void {
    this.#watch.started();
  }

  acquire(request: AcquireRequest, proposal: number): Promise<Vote> {
    const { opening } = this.#looks;
    if (opening !== undefined) {
      const again = (): Promise<Vote> => this.acquire(request, proposal);
      return opening.then(again, again);
    }
    const { token } = request;
    const acquiring = this.#acquire.acquire(request, proposal).then((vote) => {
      this.#acquiring.delete(token);
      return vote;
    });
    this.#acquiring.set(token, acquiring);
    return acquiring;
  }

  /** Raises the fences of a lease that this node granted with another token. Answers why not, where it could not. */
  raiseFence(lease: LeaseRequest, fencingToken: number): Promise<Unavailable | undefined> {
    return this.#acquire.raiseFence(lease, fencingToken);
  }

  extend(leases: readonly Restoration[]): Promise<readonly RenewalVote[]> {
    return extendAt(this.#scripts, leases);
  }

  /**
   * Also what a request on its way may yet take. It can be overtaken between two slots, or when the server did not know the script, or
   * refused the requests that were sent together.
   */
  release(lease: LeaseReference, how: ReleaseManner = {}): Promise<ReleaseOutcome> {
    const acquiring = this.#acquiring.get(lease.token);
    const releasing = this.#release.release(lease, how);
    if (acquiring === undefined) return releasing;
    return releasing.then(async (outcome) => {
      if (outcome.status !== 'not-held') return outcome;
      await acquiring;
      return this.#release.release(lease, how);
    });
  }

  /** Gives a lease another owner token. */
  transfer(request: TransferRequest): Promise<TransferOutcome> {
    return transferAt(this.#scripts, this.#release, request);
  }

  /** Runs commands of the application, as long as the lease holds its keys. */
  write(request: WriteRequest): Promise<WriteOutcome> {
    return writeAt(this.#scripts, request);
  }

  /** Sets the limit of a key; `undefined`: none any more. */
  setLimit(key: string, limit: number | undefined): Promise<SetLimitOutcome> {
    return setLimitAt(this.#scripts, key, limit);
  }

  /** Ends any lease of the key. */
  forceRelease(key: string): Promise<ReleaseOutcome> {
    return this.release({ keys: [key], token: '' }, { whileDown: 'waits' });
  }

  inspect(key: string): Promise<InspectVote> {
    return inspectAt(this.#scripts, key);
  }

  /** Whether releases are reported from now on. */
  listen(onCall: ReleaseListener, onDeaf: () => void): Promise<boolean> {
    const { prefix } = this.#scripts.parts;
    return this.#inbox.open((message) => {
      if (message === undefined) onCall();
      else if (message.startsWith('{')) this.onMessage?.(message);
      else {
        const heard = lineCallOf(message);
        if (heard?.name.startsWith(prefix)) onCall(heard.name.slice(prefix.length), heard.call);
      }
    }, onDeaf);
  }

  /** One for each of its masters. */
  health(withinMs?: number): Promise<readonly NodeHealth[]> {
    return this.#looks.health(withinMs);
  }

  close(): void {
    this.#watch.close();
    this.#inbox.close();
    this.#scripts.flush();
    this.#connection.close();
  }
}

const lineModeOf = ({ isCluster }: RedisSource, node: 'only' | 'one of several'): LineMode => {
  if (node === 'one of several') return 'quorum';
  return isCluster ? 'cluster' : 'standalone';
};

/** What scripts send to those in line (`notify` in `scripts/places.ts`): `<tail of the token, or id> <ms> <main key>`. */
const CALL = /^(\S+) (\d+) (.*)$/s;

/** A message from a script, with the name of the key it is about; `undefined` for what is none. */
function lineCallOf(
  message: string,
): { readonly name: string; readonly call: LineCall } | undefined {
  const [, to, inMs, name] = CALL.exec(message) ?? [];
  if (to === undefined || name === undefined) return undefined;
  return { name, call: { to, inMs: Number(inMs) } };
}
