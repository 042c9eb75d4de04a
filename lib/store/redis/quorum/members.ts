import { LockConfigurationError } from '../../../errors.js';
import type { Voter } from './voter.js';
import { quorumOf } from './poll.js';

/** Sees to it that no server has two votes. */
export class Members {
  readonly #nodes: readonly Voter[];
  /** Which node votes for a server, by the run of the server. */
  readonly #voters = new Map<string, Voter>();

  constructor(nodes: readonly Voter[]) {
    this.#nodes = nodes;
  }

  /**
   * @param mark the name of each node, or the run of its server, as far as servers tell it: one server can have many names
   * @throws LockConfigurationError when one server is listed twice
   */
  expectDifferent(mark: 'name' | 'run'): void {
    for (const node of this.#nodes) {
      const first = this.#nodes.find((other) => other[mark] === node[mark]);
      if (node[mark] !== undefined && first !== undefined && first !== node)
        throw new LockConfigurationError(
          `Option "redis" lists one server twice: ${first.name} and ${node.name}. ` +
            'The nodes of a quorum have to fail independently of each other.',
        );
    }
  }

  /**
   * A server that was not there at the start, or is at another address by now, may be one that is listed already. It has one vote: that of
   * the node that reached it first, for requests of that one may have been answered.
   */
  setTwinsAside(): void {
    for (const [run, node] of this.#voters) if (node.run !== run) this.#voters.delete(run);
    for (const node of this.#nodes) {
      const voter = (node.run === undefined ? undefined : this.#voters.get(node.run)) ?? node;
      if (node.run !== undefined) this.#voters.set(node.run, voter);
      node.looks.setAside(voter === node ? undefined : voter.name);
    }
  }
}

/** What the reachable nodes mean for locks. */
export function situationOf(nodes: readonly Voter[]): string {
  const quorum = quorumOf(nodes.length);
  const there = nodes.filter(({ isWell }) => isWell).length;
  const quarantined = nodes.filter((node) => node.isQuarantined).length;
  const more = quarantined === 0 ? '' : ` (${String(quarantined)} in quarantine)`;
  const left = `${String(there)} of ${String(nodes.length)} nodes are usable${more}`;
  return there >= quorum
    ? `${left}: locks are granted.`
    : `${left}: locks are refused (503) until ${String(quorum)} are usable.`;
}

/** What the operator should know of an even number of nodes; `undefined` of an odd one. */
export function evenNumberProblem(count: number): string | undefined {
  if (count % 2 === 1) return undefined;
  return count === 2
    ? 'Option "redis" lists 2 nodes. Both have to agree, so the loss of either ends all locks: take one, or three.'
    : `Option "redis" lists ${String(count)} nodes: they survive the loss of ${String(count - quorumOf(count))}, as ${String(count - 1)} would. Take an odd number.`;
}
