import type { NodeHealth, Unavailable } from '../../lock-store.js';
import { healthWithin, nodeHealth } from './node-health.js';
import type { Finding } from './node-watch.js';
import { probe, remedyFor } from './probe.js';
import type { Server } from './server.js';
import { NodeTrial } from './trial.js';

/** Looks at one node: whether it grants locks, and why not. What the looks find is reported by `NodeWatch`. */
export class NodeLooks {
  readonly #server: Server;
  readonly #trial: NodeTrial;
  /** The first look. Until it is over, no other look may find a new server and treat it as one that forgot. */
  opening: Promise<unknown> | undefined;
  /** Under way. */
  #healthLooks: ReturnType<typeof nodeHealth> | undefined;
  /** What was last said of its eviction policy. */
  #evictionWarning: string | undefined;

  constructor(server: Server) {
    this.#server = server;
    this.#trial = new NodeTrial(server);
  }

  /**
   * Connects, and finds out what the operator should know of how the node is: said when its watch has `started`.
   *
   * @throws LockConfigurationError for what makes the restart guard impossible
   */
  async open(): Promise<void> {
    const { watch } = this.#server;
    watch.starts();
    const looking = this.look('start');
    this.opening = looking;
    try {
      watch.found(await looking, 'start');
    } finally {
      this.opening = undefined;
    }
  }

  look(when: 'start' | 'later'): Promise<Finding> {
    return probe(this.#server, this.#trial, when, (warning) => {
      this.#warnOfEviction(warning);
    });
  }

  /**
   * The health of each of its masters. Checks that come together share one look, which continues until its requests are
   * answered or time out.
   */
  async health(withinMs = Infinity): Promise<readonly NodeHealth[]> {
    const looks = (this.#healthLooks ??= this.#lookAtHealth());
    const { scheduler, watch, prefix } = this.#server;
    const found = await Promise.all(
      withinMs === Infinity
        ? looks.values()
        : [...looks].map(([node, health]) => healthWithin(node, health, withinMs, scheduler)),
    );
    return found.map((node) => {
      const { problem, quarantinedForMs } = node;
      if (problem === undefined && quarantinedForMs === 0) return node;
      const remedy = node.remedy ?? remedyFor(problem ?? '', prefix);
      return { ...node, since: watch.troubleSince, remedy: remedy === '' ? undefined : remedy };
    });
  }

  /** The node does not vote as long as it is the same server as another node. */
  setAside(twin: string | undefined): void {
    const server = this.#server;
    const { connection, options, name } = server;
    if (twin !== undefined && twin !== server.twin)
      options.warn(`Redis at ${name} is the same server as ${twin}: it has one vote, not two.`);
    server.twin = twin;
    connection.setAside(twin && `is the same server as ${twin}`);
  }

  /** Something was answered with an error, too late, or could not be done in full. */
  doubtAfter(failed: Unavailable): void {
    const { connection, watch, twin } = this.#server;
    const kind = failed.nodes[0]?.kind;
    // The end of a connection is logged, but of a Cluster it is that of one node. The first look tells the rest.
    if (kind === 'connection' && connection.client.kind === 'single') return;
    if (!connection.isThere || !watch.isWell) return;
    if (this.opening !== undefined || twin !== undefined) return;
    watch.doubted(failed.transient ? 'for a moment' : 'for good');
  }

  /** Once for each policy that it has. */
  #warnOfEviction(warning: string | undefined): void {
    const { connection, options } = this.#server;
    if (warning !== undefined && warning !== this.#evictionWarning) options.warn(warning);
    // Another node of a Cluster may have been asked this time.
    if (warning !== undefined || connection.client.kind === 'single')
      this.#evictionWarning = warning;
  }

  #lookAtHealth(): ReturnType<typeof nodeHealth> {
    const looks = nodeHealth(this.#server, this.#trial);
    void Promise.all(looks.values()).then(() => {
      this.#healthLooks = undefined;
    });
    return looks;
  }
}
