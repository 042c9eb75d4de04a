/** What is done to the servers and the processes of a run, all of it from one seed. */
import { Random } from './random.js';

/** Every lease of the run lasts one of these; short, so that a run of seconds sees many of them end. */
export const TTLS_MS = [500, 700, 1_000] as const;
export const LONGEST_TTL_MS = Math.max(...TTLS_MS);
export const NODE_TIMEOUT_MS = 150;

/** What everybody wants. */
export const KEYS = ['a', 'b', 'c', 'd', 'e'] as const;

/** What is to be done once: so many that new ones are begun to the end of a run, and so few that several processes begin them. */
export const JOBS: readonly string[] = Array.from({ length: 60 }, (_, job) => `job:${job}`);

/** What every process wants to lead. */
export const LEADER = 'leader';

/** One and the same for all who want a key, mostly: callers who want another one take no turns under one lease. */
export const ttlOf = (key: string): number =>
  TTLS_MS[(KEYS as readonly string[]).indexOf(key) % TTLS_MS.length] ?? LONGEST_TTL_MS;

const CLIENTS = 4;

/** What happens on the way to a server. */
const WAY_FAULTS = ['silence', 'cut', 'refused', 'delayed'] as const;
const NODE_FAULTS = ['node-killed', 'node-stopped', ...WAY_FAULTS] as const;

export type WayFault = (typeof WAY_FAULTS)[number];
export type NodeFault = (typeof NODE_FAULTS)[number];
type ClientFault = 'client-stopped' | 'client-killed';

/** Ways to make a server unavailable that harm its memory in no way. */
const OUTAGES = ['node-stopped', 'silence', 'refused'] as const;

export type Step = {
  /** Its place in the plan, which the history refers to. */
  readonly step: number;
  /** Steps of one lane follow each other; lanes run side by side. */
  readonly lane: number;
  readonly atMs: number;
  readonly forMs: number;
} & (
  | {
      readonly kind: NodeFault;
      /** Index of the server. */
      readonly target: number;
      /** How much later everything arrives, each way; 0 unless `delayed`. */
      readonly delayMs: number;
    }
  /**
   * Forgets everything, and is back at once. Another server is out of reach until then, so that leases stand on a majority that the
   * one belongs to: the two of them together could give their keys away.
   */
  | {
      readonly kind: 'node-restarted';
      readonly target: number;
      readonly without: number | undefined;
    }
  /** A majority of the servers does not answer, and keeps its data. */
  | {
      readonly kind: 'outage';
      readonly targets: readonly number[];
      readonly by: (typeof OUTAGES)[number];
    }
  /** One client, and nobody else, does not reach a majority of the servers. */
  | {
      readonly kind: 'client-cut-off';
      readonly target: number;
      readonly from: readonly number[];
      readonly by: 'silence' | 'refused';
    }
  | { readonly kind: ClientFault; readonly target: number }
);

/**
 * What may happen to the servers' memory besides all other faults, because no lock survives all of it at once:
 * - `forgetful`: a server is killed, and comes back empty when whatever it has forgotten is over, or was renewed by a majority without
 *   it ("delayed restarts" of Redlock): after more than the longest TTL. A single server is not killed, for nobody else remembers;
 * - `guarded`: the same, and a server is empty and back at once. The clients have it wait before it votes (`restartGuard`);
 * - `clocks-set-back`: no server forgets anything. Each has given fencing tokens that are ahead of its clock, each by another time.
 */
const MODES = ['forgetful', 'guarded', 'clocks-set-back'] as const;
type Mode = (typeof MODES)[number];

export interface Plan {
  readonly mode: Mode;
  readonly seed: number;
  readonly nodes: number;
  readonly clients: number;
  /** The slots of the clients whose callers take no turns under one lease; the callers of the others do. */
  readonly withoutHandoff: readonly number[];
  readonly lengthMs: number;
  /** By time. */
  readonly steps: readonly Step[];
}

type Draft = Step extends infer Each
  ? Each extends Step
    ? Omit<Each, 'step' | 'lane'>
    : never
  : never;

/**
 * The plan of a seed; each of its lanes begins alike, however long the plan is.
 *
 * Faults of servers that are no outage harm a minority: each lane owns its servers, and harms one at a time. An outage makes a majority
 * unavailable, which keeps its data. Servers that forget do so by the rules of the plan's mode.
 */
export function planOf({ seed, nodes, lengthMs }: Pick<Plan, 'seed' | 'nodes' | 'lengthMs'>): Plan {
  const random = new Random(seed);
  const mode = random.pick(MODES);
  const minority = Math.floor((nodes - 1) / 2);
  const nodeLanes = Math.max(1, minority);
  const lanes = Array.from({ length: nodeLanes }, (_, lane) => {
    const own = range(nodes).filter((node) => node % nodeLanes === lane);
    return drawLane(random.fork(lane), lengthMs, nodeDeck(own, nodes, mode));
  });
  lanes.push(drawLane(random.fork(nodeLanes), lengthMs, clientDeck(CLIENTS, nodes)));
  const withoutHandoff = random.fork(nodeLanes + 1).sample(range(CLIENTS), CLIENTS / 2);
  const steps = lanes
    .flatMap((drafts, lane) => drafts.map((draft) => ({ ...draft, lane })))
    .sort((a, b) => a.atMs - b.atMs || a.lane - b.lane)
    .map((draft, step): Step => ({ ...draft, step }));
  return { mode, seed, nodes, clients: CLIENTS, withoutHandoff, lengthMs, steps };
}

/** One step in words. */
export function describeStep(step: Step): string {
  const when = `${(step.atMs / 1_000).toFixed(2)} s, for ${step.forMs} ms`;
  if (step.kind === 'outage') {
    return `${when}: outage of servers ${step.targets.join(', ')} (${step.by})`;
  }
  if (step.kind === 'delayed') return `${when}: delayed ${step.target} by ${step.delayMs} ms`;
  if (step.kind === 'client-cut-off') {
    return `${when}: client-cut-off ${step.target} from ${step.from.join(', ')} (${step.by})`;
  }
  if (step.kind !== 'node-restarted') return `${when}: ${step.kind} ${step.target}`;
  return `${when}: ${step.without ?? 'none'} refused, then node-restarted ${step.target}`;
}

type Card = (atMs: number, random: Random) => Draft;

/** Draws each card of the deck once, in any order, and again, until the time is over. */
function drawLane(random: Random, lengthMs: number, deck: readonly Card[]): readonly Draft[] {
  const drafts: Draft[] = [];
  let atMs = random.between(200, 600);
  for (;;) {
    for (const card of random.sample(deck)) {
      const draft = card(atMs, random);
      if (atMs + draft.forMs > lengthMs) return drafts;
      drafts.push(draft);
      atMs += draft.forMs + random.between(150, 500);
    }
  }
}

function nodeDeck(own: readonly number[], nodes: number, mode: Mode): readonly Card[] {
  const majority = majorityOf(nodes);
  const mayKill = nodes > 1 && mode !== 'clocks-set-back';
  const kinds = NODE_FAULTS.filter((kind) => kind !== 'node-killed' || mayKill);
  const deck = kinds.map((kind): Card => (atMs, random) => ({
    kind,
    target: random.pick(own),
    atMs,
    forMs: nodeFaultMs(kind, random),
    delayMs: kind === 'delayed' ? random.between(20, 150) : 0,
  }));
  if (mode === 'guarded') deck.push(restarted(own));
  if (nodes > 1 && own.length >= majority) deck.push(outage(own, majority));
  return deck;
}

const restarted =
  (own: readonly number[]): Card =>
  (atMs, random) => {
    const [target = 0, without] = random.sample(own);
    const forMs = without === undefined ? 0 : random.between(300, LONGEST_TTL_MS);
    return { kind: 'node-restarted', target, without, atMs, forMs };
  };

const outage =
  (own: readonly number[], majority: number): Card =>
  (atMs, random) => ({
    kind: 'outage',
    targets: random.sample(own, majority),
    by: random.pick(OUTAGES),
    atMs,
    forMs: aroundTtl(random),
  });

/** Shorter than the shortest TTL to longer than the longest. */
const aroundTtl = (random: Random): number => random.between(200, LONGEST_TTL_MS + 300);

function nodeFaultMs(kind: NodeFault, random: Random): number {
  if (kind === 'cut') return 0;
  if (kind === 'node-killed') return random.between(LONGEST_TTL_MS + 200, LONGEST_TTL_MS + 600);
  return aroundTtl(random);
}

function clientDeck(clients: number, nodes: number): readonly Card[] {
  const anyClient = (random: Random): number => random.between(0, clients - 1);
  const longerThanALease = (random: Random): number =>
    random.between(LONGEST_TTL_MS + 100, LONGEST_TTL_MS + 800);
  const stopped: Card = (atMs, random) => ({
    kind: 'client-stopped',
    target: anyClient(random),
    atMs,
    forMs: longerThanALease(random),
  });
  const killed: Card = (atMs, random) => ({
    kind: 'client-killed',
    target: anyClient(random),
    atMs,
    forMs: 0,
  });
  const cutOff: Card = (atMs, random) => ({
    kind: 'client-cut-off',
    target: anyClient(random),
    from: random.sample(range(nodes), majorityOf(nodes)),
    by: random.pick(['silence', 'refused']),
    atMs,
    forMs: longerThanALease(random),
  });
  return [stopped, stopped, cutOff, cutOff, killed];
}

const majorityOf = (nodes: number): number => Math.floor(nodes / 2) + 1;

export const range = (length: number): readonly number[] =>
  Array.from({ length }, (_, index) => index);
