import { addressIn, type Labels, type NodeMetric, type Value } from './metrics.js';

/** What can be wrong with a server, as far as a process knows. */
export type NodeProblem =
  /** The server has no connection to this process, or does not answer. */
  | 'unreachable'
  /** The server answers, and grants no locks until an operator changes something. */
  | 'refusing'
  /** The server grants no locks yet, because it may have forgotten leases (`restartGuard`). */
  | 'quarantined'
  /** The server answers, and its messages do not arrive: waiting callers poll. */
  | 'no-messages';

/** A server, as its process sees it without asking it. */
export interface ObservedNode {
  /** `host:port`. */
  readonly name: string;
  readonly problems: Readonly<Record<NodeProblem, boolean>>;
  /** By how many ms its clock is ahead of this machine's, at least; `undefined` while that is unknown. */
  readonly clockOffsetMs: number | undefined;
}

/** A store whose servers can be observed. */
export interface ObservedStore {
  readonly nodes: readonly ObservedNode[];
  /** How many more servers have to grant locks before a lock can be granted. */
  readonly nodesMissing: number;
}

/** The stores of this process that are open. */
export const OPEN_STORES = new Set<ObservedStore>();

/** The values of a metric now. If several services use one server, the worst value counts. */
export function readNodes(id: NodeMetric): readonly Value[] {
  const worst = new Map<string, Value>();
  for (const store of OPEN_STORES)
    for (const each of valuesOf(store, id)) {
      const name = JSON.stringify(each.labels);
      const before = worst.get(name);
      if (before === undefined || Math.abs(each.value) > Math.abs(before.value))
        worst.set(name, each);
    }
  return [...worst.values()];
}

function* valuesOf(store: ObservedStore, id: NodeMetric): Generator<Value> {
  if (id === 'nodesMissing') {
    yield { value: store.nodesMissing, labels: {} };
    return;
  }
  for (const { name, problems, clockOffsetMs } of store.nodes) {
    const of: Labels = addressIn(name);
    if (id === 'nodeProblem') {
      for (const [problem, isSo] of Object.entries(problems))
        yield { value: Number(isSo), labels: { ...of, 'holdfast.problem': problem } };
    } else if (clockOffsetMs !== undefined) yield { value: clockOffsetMs / 1_000, labels: of };
  }
}
