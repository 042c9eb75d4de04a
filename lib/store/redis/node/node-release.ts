import { holdModeOf } from '../../owner-token.js';
import type { LeaseReference, ReleaseOutcome } from '../../lock-store.js';
import { releaseScript } from '../scripts/release.js';
import type { Group } from './key-groups.js';
import type { ReleaseManner } from './node-options.js';
import type { NodeScripts } from './node-scripts.js';

/** Releases locks at one node, and leaves its lines. */
export class NodeRelease {
  readonly #scripts: NodeScripts;

  constructor(scripts: NodeScripts) {
    this.#scripts = scripts;
  }

  release(lease: LeaseReference, how: ReleaseManner): Promise<ReleaseOutcome> {
    const groups = this.#scripts.parts.slots.groups(lease.keys);
    const [first, second] = groups;
    return first !== undefined && second === undefined
      ? this.releaseGroup(first, lease, how)
      : this.#releaseGroups(groups, lease, how);
  }

  releaseGroup(
    group: Group,
    lease: LeaseReference,
    { wakes, lastToken, leaves, keepMs = 0, whileDown }: ReleaseManner = {},
  ): Promise<ReleaseOutcome> {
    const scripts = this.#scripts;
    const { connection, options, lineMode } = scripts.parts;
    const call = releaseScript.encode({
      names: group.names,
      token: lease.token,
      lineMode,
      // Another holder may have used a larger token.
      lastToken: holdModeOf(lease.token) === 'exclusive' ? lastToken : undefined,
      fenceKeepMs: scripts.putsBack ? options.fenceKeepMs : undefined,
      member: scripts.member(lease, leaves, group),
      wakes,
      holdMs: keepMs,
    });
    const timeLimitMs = options.nodeTimeoutMs;
    const request = { script: releaseScript, call, timeLimitMs, whileDown };
    return scripts.run(request).then((reply) => {
      scripts.doubtAfter(reply);
      if (reply.status === 'unavailable') return reply;
      const answer = releaseScript.decode(reply.value);
      if (answer.status === 'malformed') return connection.malformed(answer);
      return { status: answer.released === group.names.length ? 'released' : 'not-held' };
    });
  }

  async #releaseGroups(
    groups: readonly Group[],
    lease: LeaseReference,
    how: ReleaseManner,
  ): Promise<ReleaseOutcome> {
    const outcomes = await Promise.all(groups.map((group) => this.releaseGroup(group, lease, how)));
    return (
      outcomes.find(({ status }) => status === 'unavailable') ??
      outcomes.find(({ status }) => status === 'not-held') ?? { status: 'released' }
    );
  }
}
