import { LimitedWarnings } from '../../../observe/limited-warnings.js';
import type { Scheduler, Task } from '../../../time/scheduler.js';

/**
 * How long to wait before a server that grants nothing is looked at again, in ms: an operator has to change a setting
 * first.
 */
const LOOK_AGAIN_MS = 5_000;

/** The least time between two looks at a server that gives errors and was found well, in ms; what passes within it is not reported. */
const DOUBT_MS = 1_000;

/** A quarantine that ends later than was said by more than this, in ms, is another one; by less, its answer took longer. */
const ANOTHER_QUARANTINE_MS = 1_000;

/** What a look at a server found. */
export type Finding =
  | 'grants'
  /** The server grants nothing yet, and that was reported. */
  | 'waits'
  /** The server may have forgotten leases. */
  | { readonly kind: 'quarantined'; readonly leftMs: number }
  /** No answer: the connection reports that. */
  | { readonly kind: 'away'; readonly problem: string }
  /** The server replies, and grants nothing until an operator changes something. */
  | {
      readonly kind: 'refuses';
      readonly problem: string;
      readonly remedy?: string;
      /** What stays the same while the words of the problem differ. */
      readonly trouble?: string;
    };

interface WatchOptions {
  readonly scheduler: Scheduler;
  /** Address of the node. */
  readonly name: string;
  /** What the reachable nodes mean for locks, and until when they are refused. */
  readonly situation: (until: Until) => string;
  readonly warn: (message: string) => void;
  /** Finds out whether the node grants locks. May reject with what makes its options impossible. */
  readonly look: () => Promise<Finding>;
}

interface Cause {
  /** What stays the same while the words for it differ. Default: the words. */
  readonly trouble?: string | undefined;
  readonly remedy?: string | undefined;
}

/** What ends a time in which a node grants no locks. */
export type Until = 'it is reachable' | 'that is fixed' | 'then';

/**
 * Watches whether a node grants locks, and logs each change once, however often it is tried meanwhile. The changes of a node that comes and
 * goes are summed up.
 */
export class NodeWatch {
  readonly #options: WatchOptions;
  readonly #log: LimitedWarnings;
  /** What keeps it from granting locks, as it was logged last; `undefined` while it does, as far as is known. */
  #trouble: string | undefined;
  #troubleSince: Date | undefined;
  /** By the monotonic clock: when the quarantine that is its trouble ends, as it was logged. */
  #quarantinedUntil: number | undefined;
  #looking: Promise<unknown> = Promise.resolve();
  #again: Task | undefined;
  /** The node gave an error, and is looked at for that. */
  #isDoubted = false;
  /** The look before found that it does not answer, although it is connected. */
  #wasAway = false;
  #doubtedAt = -Infinity;
  /** What is to be said when the other nodes are known, too; `undefined` when they are. */
  #unsaid: (() => string)[] | undefined;
  #isClosed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#log = new LimitedWarnings(options.warn, options.scheduler);
  }

  /** Nothing is known that keeps it from granting locks. */
  get isWell(): boolean {
    return this.#trouble === undefined;
  }

  /** Since when something is known that keeps it from granting locks. */
  get troubleSince(): Date | undefined {
    return this.isWell ? undefined : this.#troubleSince;
  }

  get isQuarantined(): boolean {
    return this.#quarantinedUntil !== undefined;
  }

  /** The first looks at all nodes begin: what is said of one depends on what is found of the others. */
  starts(): void {
    this.#unsaid = [];
  }

  /** The first looks at all nodes are over. */
  started(): void {
    const unsaid = this.#unsaid ?? [];
    this.#unsaid = undefined;
    for (const text of unsaid) this.#say(text);
  }

  /**
   * The connection was lost. For a node that granted nothing before, that is no news, unless it would have recovered by
   * itself.
   */
  lost(): void {
    const { name } = this.#options;
    if (this.isWell || this.isQuarantined)
      this.#report(`The connection to Redis at ${name} was lost`, 'it is reachable');
  }

  /** The server refuses the connection until an operator changes a setting. */
  refused(problem: string): void {
    this.#report(`Redis at ${this.#options.name} is not usable: ${problem}`, 'that is fixed');
  }

  /** There is a new connection: what was wrong may be over. */
  connected(): void {
    if (!this.isWell) this.#look();
  }

  /** The node refuses to grant locks for this many ms, because it may have forgotten leases. */
  quarantined(leftMs: number): void {
    const until = this.#now() + leftMs;
    if (until > (this.#quarantinedUntil ?? -Infinity) + ANOTHER_QUARANTINE_MS) {
      this.#trouble = undefined; // it may be in the same words
      this.#report(
        `Redis at ${this.#options.name} may have forgotten leases (it is new, was restarted or lost its data): it grants no locks for ` +
          `another ${String(Math.ceil(leftMs))} ms ("restartGuard")`,
        'then',
      );
      this.#quarantinedUntil = until;
    }
    this.#lookLater(Math.min(leftMs, LOOK_AGAIN_MS));
  }

  /** The node granted a lock. Other troubles may hold for some requests and not for others: they end with a look. */
  granted(): void {
    if (this.isQuarantined) this.#recovered();
  }

  /**
   * The node answered a request with an error, or could not do all of it: that may be so for this request, or for all.
   * With a thousand a second it is looked at once a second at most, and only what the look finds is reported.
   */
  doubted(what: 'for good' | 'for a moment'): void {
    if (!this.isWell || this.#isDoubted || this.#isClosed) return;
    this.#isDoubted = true;
    const now = this.#now();
    const pauseMs = Math.max(0, this.#doubtedAt + DOUBT_MS - now);
    const inMs = what === 'for good' ? pauseMs : DOUBT_MS;
    this.#doubtedAt = now + inMs;
    this.#lookLater(inMs);
  }

  /** What a look has found: at the start of the process it is reported that the server does not answer, and later that is known. */
  found(finding: Finding, when: 'start' | 'later'): void {
    if (this.#isClosed) return;
    const isAway = typeof finding === 'object' && finding.kind === 'away';
    const isAwayAgain = isAway && this.#wasAway;
    this.#wasAway = isAway && this.isWell;
    if (finding === 'grants') {
      if (!this.isWell) this.#recovered();
      return;
    }
    if (finding === 'waits' || (finding.kind === 'away' && when === 'later' && !isAwayAgain)) {
      // A connection that is silent is replaced, and that is logged. One that answers too late for every request is not.
      if (!this.isWell || this.#wasAway) this.#lookLater();
      return;
    }
    if (finding.kind === 'quarantined') {
      this.quarantined(finding.leftMs);
      return;
    }
    const text = `Redis at ${this.#options.name} ${finding.problem}`;
    if (finding.kind === 'away') this.#report(text, 'it is reachable');
    else this.#report(text, 'that is fixed', finding);
  }

  close(): void {
    this.#isClosed = true;
    this.#log.close();
    this.#again?.cancel();
  }

  /** One look after the other: what a look finds that began before this call may be over. */
  #look(): void {
    this.#again?.cancel();
    this.#looking = this.#looking.then(async () => {
      if ((this.isWell && !this.#isDoubted) || this.#isClosed) return;
      try {
        this.found(await this.#options.look(), 'later');
      } catch (error) {
        this.#report(String(error), 'that is fixed');
      }
      this.#isDoubted = this.#wasAway;
    });
  }

  #report(text: string, until: Until, { trouble = text, remedy = '' }: Cause = {}): void {
    this.#lookLater();
    if (this.#isClosed || trouble === this.#trouble) return;
    if (this.isWell) this.#troubleSince = new Date(this.#options.scheduler.runtime.now().wallMs);
    this.#trouble = trouble;
    this.#wasAway = false;
    this.#quarantinedUntil = undefined;
    this.#say(() => `${text}. ${this.#options.situation(until)} ${remedy}`.trimEnd());
  }

  #recovered(): void {
    this.#again?.cancel();
    const change = this.isQuarantined ? 'is out of quarantine' : 'is usable again';
    this.#trouble = undefined;
    this.#quarantinedUntil = undefined;
    this.#say(() => `Redis at ${this.#options.name} ${change}. ${this.#options.situation('then')}`);
  }

  #say(text: () => string): void {
    if (this.#unsaid === undefined) this.#log.warn(text());
    else this.#unsaid.push(text);
  }

  #lookLater(inMs = LOOK_AGAIN_MS): void {
    this.#again?.cancel();
    if (this.#isClosed) return;
    this.#again = this.#options.scheduler.schedule(inMs, () => {
      this.#look();
    });
  }

  #now(): number {
    return this.#options.scheduler.runtime.now().monotonicMs;
  }
}
