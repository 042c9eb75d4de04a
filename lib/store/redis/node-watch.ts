import type { Finding } from './probe.js';

/** How long to wait before a server that grants nothing is looked at again, in ms: somebody has to change a setting first. */
const LOOK_AGAIN_MS = 5_000;

interface WatchOptions {
  /** Address of the node. */
  readonly name: string;
  /** What the nodes that are there mean for locks, and until when they are refused. */
  readonly situation: (until: Until) => string;
  readonly warn: (message: string) => void;
  /** Finds out whether the node grants locks. May reject with what makes its options impossible. */
  readonly look: () => Promise<Finding>;
}

/** What ends a time in which a node grants no locks. */
export type Until = 'it is there' | 'that is fixed';

/** Watches whether a node grants locks, and logs each change once, however often it is tried meanwhile. */
export class NodeWatch {
  readonly #options: WatchOptions;
  /** Why it grants no locks, as it was logged last; `undefined` while it does, as far as is known. */
  #trouble: string | undefined;
  #looking: Promise<unknown> = Promise.resolve();
  #again: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** Nothing is known that keeps it from granting locks. */
  get isWell(): boolean {
    return this.#trouble === undefined;
  }

  /** The connection was lost. Of a node that granted nothing before, that is no news. */
  lost(): void {
    const { name } = this.#options;
    if (this.isWell) this.#report(`The connection to Redis at ${name} was lost`, 'it is there');
  }

  /** The server refuses the connection until somebody changes a setting. */
  refused(problem: string): void {
    this.#report(`Redis at ${this.#options.name} is not usable: ${problem}`, 'that is fixed');
  }

  /** There is a new connection: what was wrong may be over. */
  connected(): void {
    if (!this.isWell) this.#look();
  }

  /** What a look has found: at the start of the process it is reported that the server does not answer, and later that is known. */
  found(finding: Finding, when: 'start' | 'later'): void {
    if (this.#isClosed) return;
    const { name, situation, warn } = this.#options;
    if (finding === 'grants') {
      if (this.isWell) return;
      this.#trouble = undefined;
      warn(`Redis at ${name} is there. ${situation('it is there')}`);
      return;
    }
    if (finding === 'waits' || (finding.kind === 'away' && when === 'later')) {
      if (!this.isWell) this.#lookLater();
      return;
    }
    const text = `Redis at ${name} ${finding.problem}`;
    if (finding.kind === 'away') this.#report(text, 'it is there');
    else this.#report(text, 'that is fixed', finding.remedy);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#again);
  }

  /** One look after the other: what a look finds that began before this call may be over. */
  #look(): void {
    clearTimeout(this.#again);
    this.#looking = this.#looking.then(async () => {
      if (this.isWell || this.#isClosed) return;
      try {
        this.found(await this.#options.look(), 'later');
      } catch (error) {
        this.#report(String(error), 'that is fixed');
      }
    });
  }

  #report(trouble: string, until: Until, remedy = ''): void {
    this.#lookLater();
    if (this.#isClosed || trouble === this.#trouble) return;
    this.#trouble = trouble;
    this.#options.warn(`${trouble}. ${this.#options.situation(until)} ${remedy}`.trimEnd());
  }

  #lookLater(): void {
    clearTimeout(this.#again);
    if (this.#isClosed) return;
    this.#again = setTimeout(() => {
      this.#look();
    }, LOOK_AGAIN_MS).unref();
  }
}
