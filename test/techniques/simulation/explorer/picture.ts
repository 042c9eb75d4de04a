/** What the timeline shows: a lane for each process, for each node, and for the database. Made from facts alone. */
import type { Fact } from './facts.js';

/** What a call does in a stretch of time; `over`: its lease is over, and its work goes on. */
export type SpanKind = 'waits' | 'holds' | 'over';

interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Span extends Stretch {
  readonly kind: SpanKind;
  readonly call: string;
  readonly mode: string;
  readonly token: number | undefined;
}

/** A stretch in which something is wrong. */
export interface Trouble extends Stretch {
  readonly kind: 'starting' | 'paused' | 'dead' | 'stopped' | 'cut';
  /** Of a cut: from which node. */
  readonly node?: number;
}

export interface Mark {
  readonly atMs: number;
  readonly kind: 'renewed' | 'jeopardy' | 'lost' | 'accepted' | 'refused';
  readonly process: number;
  readonly token: number | undefined;
}

export interface ProcessLane {
  readonly process: number;
  /** Calls that are open at the same time are in different rows. */
  readonly rows: readonly (readonly Span[])[];
  readonly troubles: readonly Trouble[];
  readonly marks: readonly Mark[];
}

export interface Saying extends Stretch {
  readonly holders: readonly number[];
}

export interface NodeLane {
  readonly node: number;
  readonly sayings: readonly Saying[];
  readonly troubles: readonly Trouble[];
}

export interface Picture {
  readonly endMs: number;
  readonly processes: readonly ProcessLane[];
  readonly nodes: readonly NodeLane[];
  /** What reached the database. */
  readonly writes: readonly Mark[];
}

/** A call, as far as its facts go. */
interface Call {
  readonly process: number;
  readonly name: string;
  readonly mode: string;
  readonly askedAtMs: number;
  grantedAtMs?: number;
  token?: number;
  untilMs?: number;
  endedAtMs?: number;
}

export function pictureOf(
  facts: readonly Fact[],
  { processes, nodes }: { readonly processes: number; readonly nodes: number },
  endMs: number,
): Picture {
  const calls = callsOf(facts);
  const marks = marksOf(facts, calls);
  const each = <T>(count: number, make: (index: number) => T): readonly T[] =>
    Array.from({ length: count }, (_, index) => make(index));
  return {
    endMs,
    processes: each(processes, (process) => ({
      process,
      rows: rowsOf(
        [...calls.values()].filter((call) => call.process === process),
        endMs,
      ),
      troubles: troublesOf(
        facts.filter((fact) => 'process' in fact && fact.process === process),
        endMs,
      ),
      marks: marks.filter((mark) => mark.process === process && !isWrite(mark)),
    })),
    nodes: each(nodes, (node) => {
      const own = facts.filter((fact) => 'node' in fact && fact.node === node);
      return {
        node,
        sayings: sayingsOf(own, endMs),
        troubles: stretches(own, endMs, {
          begins: (fact) => (fact.type === 'node stops' ? { kind: 'stopped' as const } : undefined),
          ends: (fact) => fact.type === 'node starts',
        }),
      };
    }),
    writes: marks.filter(isWrite),
  };
}

const isWrite = ({ kind }: Mark): boolean => kind === 'accepted' || kind === 'refused';

function callsOf(facts: readonly Fact[]): ReadonlyMap<string, Call> {
  const calls = new Map<string, Call>();
  for (const fact of facts) {
    if (fact.type === 'asks') {
      const { process, call: name, mode, atMs: askedAtMs } = fact;
      calls.set(name, { process, name, mode, askedAtMs });
    }
    if (fact.type === 'dies')
      for (const call of calls.values())
        if (call.process === fact.process) call.endedAtMs ??= fact.atMs;
    const call = 'call' in fact ? calls.get(fact.call) : undefined;
    if (call !== undefined) apply(fact, call);
  }
  return calls;
}

function apply(fact: Fact, call: Call): void {
  switch (fact.type) {
    case 'granted':
      call.grantedAtMs = fact.atMs;
      call.token = fact.token;
      break;
    case 'holds':
    case 'renewed':
    case 'jeopardy':
      call.untilMs = fact.untilMs;
      break;
    case 'lost':
      // What was lost was held no longer than until then.
      call.untilMs = Math.min(call.untilMs ?? fact.atMs, fact.atMs);
      break;
    case 'ends work':
    case 'refused':
    case 'failed':
      call.endedAtMs ??= fact.atMs;
      break;
    default:
  }
}

/** Each call in the first row in which there is room for it. */
function rowsOf(calls: readonly Call[], endMs: number): readonly (readonly Span[])[] {
  const rows: Span[][] = [];
  for (const call of calls) {
    const free = rows.find((row) => (row.at(-1)?.toMs ?? 0) <= call.askedAtMs);
    const spans = spansOf(call, endMs);
    if (free === undefined) rows.push([...spans]);
    else free.push(...spans);
  }
  return rows.length > 0 ? rows : [[]];
}

function spansOf(call: Call, endMs: number): readonly Span[] {
  const { name, mode, token, askedAtMs, grantedAtMs = Infinity, untilMs = Infinity } = call;
  const endedAtMs = Math.min(call.endedAtMs ?? endMs, endMs);
  const span = (kind: SpanKind, fromMs: number, toMs: number): readonly Span[] =>
    toMs > fromMs ? [{ kind, call: name, mode, token, fromMs, toMs }] : [];
  return [
    ...span('waits', askedAtMs, Math.min(grantedAtMs, endedAtMs)),
    ...span('holds', grantedAtMs, Math.min(untilMs, endedAtMs)),
    ...span('over', Math.max(grantedAtMs, untilMs), endedAtMs),
  ];
}

interface Bounds<Facts> {
  readonly begins: (fact: Fact) => Facts | undefined;
  readonly ends: (fact: Fact) => boolean;
}

function stretches<Facts>(
  facts: readonly Fact[],
  endMs: number,
  { begins, ends }: Bounds<Facts>,
): readonly (Facts & Stretch)[] {
  const found: (Facts & Stretch)[] = [];
  let open: (Facts & { readonly fromMs: number }) | undefined;
  const close = (toMs: number): void => {
    if (open !== undefined) found.push({ ...open, toMs });
    open = undefined;
  };
  for (const fact of facts) {
    if (ends(fact)) close(fact.atMs);
    const begun = begins(fact);
    if (begun === undefined) continue;
    close(fact.atMs);
    open = { ...begun, fromMs: fact.atMs };
  }
  close(endMs);
  return found;
}

function troublesOf(facts: readonly Fact[], endMs: number): readonly Trouble[] {
  const states = stretches(facts, endMs, {
    begins: ({ type }) => {
      if (type === 'starts') return { kind: 'starting' as const };
      if (type === 'pauses') return { kind: 'paused' as const };
      return type === 'dies' ? { kind: 'dead' as const } : undefined;
    },
    ends: ({ type }) => type === 'ready' || type === 'resumes',
  });
  const nodes = facts.flatMap((fact) => (fact.type === 'cut' ? [fact.node] : []));
  const cuts = [...new Set(nodes)].flatMap((node) =>
    stretches(
      facts.filter((fact) => 'node' in fact && fact.node === node),
      endMs,
      {
        begins: ({ type }) => (type === 'cut' ? { kind: 'cut' as const, node } : undefined),
        ends: ({ type }) => type === 'joined',
      },
    ),
  );
  return [...states, ...cuts];
}

function sayingsOf(facts: readonly Fact[], endMs: number): readonly Saying[] {
  return stretches(facts, endMs, {
    begins: (fact) => (fact.type === 'says' && fact.holders.length > 0 ? fact : undefined),
    ends: ({ type }) => type === 'says' || type === 'node stops',
  })
    .map((saying) => ({ ...saying, toMs: Math.min(saying.toMs, saying.untilMs) }))
    .reduce<Saying[]>((joined, { holders, fromMs, toMs }) => {
      const last = joined.at(-1);
      const goesOn = last?.toMs === fromMs && last.holders.join() === holders.join();
      if (goesOn) joined.splice(-1, 1, { ...last, toMs });
      else joined.push({ holders, fromMs, toMs });
      return joined;
    }, []);
}

function marksOf(facts: readonly Fact[], calls: ReadonlyMap<string, Call>): readonly Mark[] {
  return facts.flatMap((fact): readonly Mark[] => {
    if (!('call' in fact)) return [];
    const { atMs, process } = fact;
    const mark = (kind: Mark['kind']): readonly Mark[] => [
      { kind, atMs, process, token: calls.get(fact.call)?.token },
    ];
    if (fact.type === 'writes') return mark(fact.isAccepted ? 'accepted' : 'refused');
    const { type } = fact;
    return type === 'renewed' || type === 'jeopardy' || type === 'lost' ? mark(type) : [];
  });
}
