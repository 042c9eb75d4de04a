import type { LockSubject } from './contexts.js';

/** The labels of metrics. These are the names of OpenTelemetry; Prometheus has the last part of each, with `_`. */
export type Label =
  | 'holdfast.key.template'
  | 'holdfast.mode'
  | 'holdfast.outcome'
  | 'holdfast.reason'
  | 'holdfast.operation'
  | 'holdfast.problem'
  | 'server.address'
  | 'server.port';

export type Labels = Partial<Record<Label, string | number>>;

export interface Value {
  readonly value: number;
  readonly labels: Labels;
}

export interface Metric {
  /** The name in OpenTelemetry. In Prometheus it is `holdfast_acquire_duration_seconds`, for instance. */
  readonly name: string;
  /** Values of a sum are added over processes, those of a gauge are not. */
  readonly kind: 'histogram' | 'counter' | 'sum' | 'gauge';
  readonly unit: string;
  readonly help: string;
  readonly labels: readonly Label[];
  /** The upper bounds of a histogram, in its unit. */
  readonly buckets?: readonly number[];
}

const DURATIONS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
];

/** All metrics, for OpenTelemetry and Prometheus alike. */
export const METRICS = {
  acquireDuration: {
    name: 'holdfast.acquire.duration',
    kind: 'histogram',
    unit: 's',
    help: 'How long calls for a lock took, with their wait.',
    labels: ['holdfast.key.template', 'holdfast.mode', 'holdfast.outcome'],
    buckets: DURATIONS,
  },
  holdDuration: {
    name: 'holdfast.hold.duration',
    kind: 'histogram',
    unit: 's',
    help: 'How long locks were held.',
    labels: ['holdfast.key.template', 'holdfast.mode', 'holdfast.outcome'],
    buckets: DURATIONS,
  },
  lockActive: {
    name: 'holdfast.lock.active',
    kind: 'sum',
    unit: '{lock}',
    help: 'Locks that this process holds.',
    labels: ['holdfast.key.template', 'holdfast.mode'],
  },
  waiterActive: {
    name: 'holdfast.waiter.active',
    kind: 'sum',
    unit: '{waiter}',
    help: 'Calls of this process that wait for a lock.',
    labels: ['holdfast.key.template', 'holdfast.mode'],
  },
  lockOldest: {
    name: 'holdfast.lock.oldest',
    kind: 'gauge',
    unit: 's',
    help: 'How long this process has held its oldest lock.',
    labels: ['holdfast.key.template', 'holdfast.mode'],
  },
  waiterOldest: {
    name: 'holdfast.waiter.oldest',
    kind: 'gauge',
    unit: 's',
    help: 'How long the oldest call of this process has waited for its lock.',
    labels: ['holdfast.key.template', 'holdfast.mode'],
  },
  renewals: {
    name: 'holdfast.renewals',
    kind: 'counter',
    unit: '{renewal}',
    help: 'Renewals of locks, by outcome.',
    labels: ['holdfast.outcome'],
  },
  losses: {
    name: 'holdfast.losses',
    kind: 'counter',
    unit: '{lock}',
    help: 'Locks that were lost while they were held, by reason.',
    labels: ['holdfast.key.template', 'holdfast.reason'],
  },
  onceAttempts: {
    name: 'holdfast.once.attempts',
    kind: 'counter',
    unit: '{attempt}',
    help: 'Attempts at work that is done once, by outcome.',
    labels: ['holdfast.key.template', 'holdfast.outcome'],
  },
  storeRequestDuration: {
    name: 'holdfast.store.request.duration',
    kind: 'histogram',
    unit: 's',
    help: 'How long requests to Redis took, until the answer or the time limit.',
    labels: ['holdfast.operation', 'holdfast.outcome', 'server.address', 'server.port'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
  },
  nodesMissing: {
    name: 'holdfast.nodes.missing',
    kind: 'gauge',
    unit: '{node}',
    help: 'How many more servers have to grant locks before this process can get one.',
    labels: [],
  },
  nodeProblem: {
    name: 'holdfast.node.problem',
    kind: 'gauge',
    unit: '{problem}',
    help: 'Whether a server has a problem, as this process sees it: 1 or 0.',
    labels: ['holdfast.problem', 'server.address', 'server.port'],
  },
  nodeClockOffset: {
    name: 'holdfast.node.clock.offset',
    kind: 'gauge',
    unit: 's',
    help: 'By how much the clock of a server is ahead of that of this machine, at least.',
    labels: ['server.address', 'server.port'],
  },
} as const satisfies Record<string, Metric>;

export type MetricId = keyof typeof METRICS;

/** Metrics to which values are added, in contrast to those that are read. */
export type AddedMetric = Exclude<MetricId, ReadMetric>;
export type ReadMetric = LockMetric | NodeMetric;
const LOCK_METRICS = ['lockActive', 'waiterActive', 'lockOldest', 'waiterOldest'] as const;
export type LockMetric = (typeof LOCK_METRICS)[number];
const NODE_METRICS = ['nodesMissing', 'nodeProblem', 'nodeClockOffset'] as const;
export type NodeMetric = (typeof NODE_METRICS)[number];
export const READ_METRICS = [...LOCK_METRICS, ...NODE_METRICS] as const;

export const isOfNodes = (id: ReadMetric): id is NodeMetric =>
  (NODE_METRICS as readonly string[]).includes(id);

/** At most this many templates and methods have values of their own. */
const MOST_VALUES = 200;

/** The value for all others. */
const OTHER = '_OTHER';

/** Chooses the labels of a lock, with a bounded number of values. Keys are never among them. */
export class SubjectLabels {
  readonly #known = new Set<string>();

  of(subject: LockSubject): Labels {
    return {
      'holdfast.key.template': this.#bounded(subject.template ?? subject.method),
      'holdfast.mode': modeOf(subject),
    };
  }

  #bounded(value: string | undefined): string {
    if (value === undefined || this.#known.has(value)) return value ?? OTHER;
    if (this.#known.size >= MOST_VALUES) return OTHER;
    this.#known.add(value);
    return value;
  }
}

/** A limit may be computed for each call, so it is not part of the label. The wait of a candidate is no fault, however long it is. */
export function modeOf({ mode, isCandidate }: LockSubject): string {
  if (isCandidate === true) return 'leader';
  return mode.startsWith('limit') ? 'limit' : mode;
}

/** `host:port`; of a Cluster its nodes. */
export function addressIn(node: string): Labels {
  const [, address, port] = /^([^,\s]+):(\d+)$/.exec(node) ?? [];
  return {
    'server.address': address ?? node,
    'server.port': port === undefined ? '' : Number(port),
  };
}
