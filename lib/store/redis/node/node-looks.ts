import type { NodeHealth, Unavailable } from '../../lock-store.js';
import { isOneSlot, keyPatterns } from '../scripts/key-names.js';
import { mastersOf } from './cluster-masters.js';
import { healthWithin, nodeHealth, type HealthLook } from './node-health.js';
import type { NodeScripts } from './node-scripts.js';
import type { NodeTrial } from './node-trial.js';
import { probe, type Finding } from './probe.js';

/** Looks at one node: whether it grants locks, and why not. What the looks find is reported by `NodeWatch`. */
export class NodeLooks {
  readonly #name: string;
  readonly #scripts: NodeScripts;
  readonly #trial: NodeTrial;
  /** The first look. Until it is over, no other look may find a new server and treat it as one that forgot. */
  #opening: Promise<unknown> | undefined;
  /** The node that it is the same server as. */
  #twin: string | undefined;
  /** Under way. */
  #healthLooks: readonly HealthLook[] | undefined;
  /** What was last said of its eviction policy. */
  #evictionWarning: string | undefined;

  constructor(name: string, scripts: NodeScripts, trial: NodeTrial) {
    this.#name = name;
    this.#scripts = scripts;
    this.#trial = trial;
  }

  get opening(): Promise<unknown> | undefined {
    return this.#opening;
  }

  /** @throws LockConfigurationError for what makes the restart guard impossible */
  async open(): Promise<void> {
    const { watch } = this.#scripts.parts;
    watch.starts();
    const looking = this.look('start');
    this.#opening = looking;
    try {
      watch.found(await looking, 'start');
    } finally {
      this.#opening = undefined;
    }
  }

  look(when: 'start' | 'later'): Promise<Finding> {
    const { epoch, parts } = this.#scripts;
    const { connection, options, prefix, runtime, clock } = parts;
    const { nodeTimeoutMs: timeLimitMs, restartGuard, replicas } = options;
    return probe(connection, {
      ...{ name: this.#name, epoch, timeLimitMs, restartGuard, replicas },
      hasManySlots: this.#hasManySlots,
      key: this.#trial.main,
      keyPatterns: keyPatterns(prefix),
      clock: runtime,
      nodeClock: clock,
      isStart: when === 'start',
      onEviction: (warning) => {
        this.#warnOfEviction(warning);
      },
      tryGranting: () => this.#tryGrantingEverywhere(),
    });
  }

  /**
   * The health of each of its masters. Checks that come together share one look, which continues until its requests are
   * answered or time out.
   */
  health(withinMs = Infinity): Promise<readonly NodeHealth[]> {
    const looks = (this.#healthLooks ??= this.#lookAtHealth());
    if (withinMs === Infinity) return Promise.all(looks.map(({ health }) => health));
    const { scheduler } = this.#scripts.parts;
    return Promise.all(looks.map((look) => healthWithin(look, withinMs, scheduler)));
  }

  /** The node does not vote as long as it is the same server as another node. */
  setAside(twin: string | undefined): void {
    const { connection, options } = this.#scripts.parts;
    if (twin !== undefined && twin !== this.#twin) {
      options.warn(
        `Redis at ${this.#name} is the same server as ${twin}: it has one vote, not two.`,
      );
    }
    this.#twin = twin;
    connection.setAside(twin && `is the same server as ${twin}`);
  }

  /** Something was answered with an error, too late, or could not be done in full. */
  doubtAfter(failed: Unavailable): void {
    const { connection, watch } = this.#scripts.parts;
    const kind = failed.nodes[0]?.kind;
    // The end of a connection is logged, but of a Cluster it is that of one node. The first look tells the rest.
    if (kind === 'connection' && connection.client.kind === 'single') return;
    if (!connection.isThere || !watch.isWell) return;
    if (this.#opening !== undefined || this.#twin !== undefined) return;
    watch.doubted(failed.transient ? 'for a moment' : 'for good');
  }

  /** Once for each policy that it has. */
  #warnOfEviction(warning: string | undefined): void {
    const { connection, options } = this.#scripts.parts;
    if (warning !== undefined && warning !== this.#evictionWarning) options.warn(warning);
    // Another node of a Cluster may have been asked this time.
    if (warning !== undefined || connection.client.kind === 'single')
      this.#evictionWarning = warning;
  }

  /** On a Cluster at each of its masters: one that grants locks does not speak for the others. */
  async #tryGrantingEverywhere(): Promise<Unavailable | undefined> {
    const { connection } = this.#scripts.parts;
    const masters = mastersOf(connection.client).filter(({ hasSlots }) => hasSlots);
    if (masters.length === 0) return this.#tryGranting();
    const failures = await Promise.all(
      masters.map(async ({ address, serves }) => {
        const failed = await this.#tryGranting(serves);
        return failed && inPlace(failed, address);
      }),
    );
    return failures.find((failed) => failed !== undefined);
  }

  get #hasManySlots(): boolean {
    const { connection, prefix } = this.#scripts.parts;
    return connection.client.kind === 'single' && !isOneSlot(prefix);
  }

  #lookAtHealth(): readonly HealthLook[] {
    const { epoch, parts } = this.#scripts;
    const { connection, options, runtime: clock } = parts;
    const { nodeTimeoutMs: timeLimitMs, restartGuard, replicas } = options;
    const looks = nodeHealth(connection, {
      ...{ name: this.#name, epoch, twin: this.#twin, clock, timeLimitMs, restartGuard, replicas },
      hasManySlots: this.#hasManySlots,
      tryGranting: (serves) => this.#tryGranting(serves),
    });
    void Promise.all(looks.map(({ health }) => health)).then(() => {
      this.#healthLooks = undefined;
    });
    return looks;
  }

  async #tryGranting(serves?: (slot: number) => boolean): Promise<Unavailable | undefined> {
    return this.#twin === undefined ? this.#trial.tryGranting(serves) : undefined; // it has no vote
  }
}

/** On a Cluster: names the master in what went wrong. */
const inPlace = (failed: Unavailable, address: string): Unavailable => ({
  ...failed,
  nodes: failed.nodes.map((node) => ({ ...node, message: `${address}: ${node.message}` })),
});
