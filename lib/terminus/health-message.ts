import type { NodeHealth, StoreHealth } from '../store/lock-store.js';

/** Whether a server grants locks. */
export const isGranting = ({ reachable, problem, quarantinedForMs }: NodeHealth): boolean =>
  reachable && problem === undefined && quarantinedForMs === 0;

/** What clients may know of why servers grant no locks: no address, and nothing that a server said. */
export function healthMessage({ nodes, hasQuorum, warning }: StoreHealth): string | undefined {
  const failing = nodes.filter((node) => !isGranting(node));
  if (hasQuorum && failing.length === 0)
    return warning === undefined ? undefined : `Locks are granted to this process only. ${WHY}`;
  const outcome = hasQuorum ? 'Locks are granted.' : 'No lock can be granted now.';
  const [first] = failing;
  const reason =
    nodes.length === 1 && first !== undefined
      ? `The lock store is ${stateOf(first)}.`
      : `${String(failing.length)} of ${String(nodes.length)} nodes grant no locks (${statesOf(failing)}).`;
  return `${outcome} ${reason} ${WHY}`;
}

const WHY = 'The log of the application says why.';

const stateOf = ({ reachable, quarantinedForMs }: NodeHealth): string => {
  if (!reachable) return 'not reachable';
  return quarantinedForMs > 0 ? 'in quarantine' : 'refusing to grant locks';
};

/** `1 not reachable, 2 in quarantine` */
function statesOf(nodes: readonly NodeHealth[]): string {
  const counts = new Map<string, number>();
  for (const state of nodes.map(stateOf)) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, count]) => `${String(count)} ${state}`).join(', ');
}
