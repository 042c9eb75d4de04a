/**
 * Says from the history of a run whether the locks kept their promises. It knows nothing of the library: what it believes is what the
 * processes wrote down.
 */
import type { ClientEvent, History, HistoryEvent, LeftKey } from './history.js';
import { describeStep } from './plan.js';

/** How much later than its wait a caller may hear: one request to servers that are silent, on a machine that is busy. */
export const SLACK_MS = 3_000;

/** Fewer grants than these for each second of faults say that nothing was tested. */
const FEWEST_GRANTS_A_SECOND = 5;

/** One grant, and the time for which it is proven that the lock was held: none if nobody looked in time. */
interface Grant {
  readonly name: string;
  readonly keys: readonly string[];
  readonly fencingToken: number;
  from: number;
  to: number;
  /** Until when it said that it would be held. */
  promised: number;
  isOver: boolean;
}

/** What is known of the client processes from the faults of the run. */
interface Fates {
  readonly killed: ReadonlySet<string>;
  readonly stops: ReadonlyMap<string, readonly (readonly [from: number, to: number])[]>;
}

/** All violations, in words; none if the run was as it should be. */
export function check(history: History): readonly string[] {
  const fates = fatesOf(history);
  const grants = grantsOf(history.events, fates);
  return [
    ...overlaps(grants),
    ...wrongTokens(grants),
    ...lateAnswers(history.events, fates),
    ...clientsThatDidNotEnd(history.events, fates),
    ...history.left.filter((key) => !mayStay(key)).map(describeLeft),
    ...vacuities(history),
  ];
}

function fatesOf({ plan, events }: History): Fates {
  const killed = new Set<string>();
  const stops = new Map<string, [number, number][]>();
  const ends = new Map(
    events.flatMap((event) => (event.type === 'healed' ? [[event.step, event.at] as const] : [])),
  );
  for (const event of events) {
    if (event.type !== 'fault' || event.client === undefined) continue;
    const { client } = event;
    const kind = plan.steps[event.step]?.kind;
    if (kind === 'client-killed') killed.add(client);
    if (kind !== 'client-stopped') continue;
    const stop: [number, number] = [event.at, ends.get(event.step) ?? Infinity];
    stops.set(client, [...(stops.get(client) ?? []), stop]);
  }
  return { killed, stops };
}

const nameOf = ({ client, ask }: { client: string; ask: number }): string => `${client}#${ask}`;

function grantsOf(events: readonly HistoryEvent[], { killed }: Fates): readonly Grant[] {
  const grants = new Map<string, Grant>();
  for (const event of events) {
    if (!('ask' in event)) continue;
    const name = nameOf(event);
    const grant = grants.get(name);
    if (event.type === 'granted') {
      const { keys, fencingToken } = event;
      const nothing = { from: Infinity, to: -Infinity, promised: -Infinity, isOver: false };
      grants.set(name, { name, keys, fencingToken, ...nothing });
    } else if (grant === undefined) continue;
    else if (event.type === 'held') {
      grant.from = Math.min(grant.from, event.at);
      grant.to = Math.max(grant.to, event.at);
      grant.promised = Math.max(grant.promised, event.until);
    } else grant.isOver = true;
  }
  for (const grant of grants.values()) {
    // Killed in mid-hold, it has given nothing back: to the end of its lease nobody else may have the lock.
    if (killed.has(clientOf(grant)) && !grant.isOver) grant.to = Math.max(grant.to, grant.promised);
  }
  return [...grants.values()];
}

const clientOf = ({ name }: Grant): string => name.slice(0, name.indexOf('#'));

const wasSeen = ({ from, to }: Grant): boolean => from <= to;

function byKey(grants: readonly Grant[]): ReadonlyMap<string, readonly Grant[]> {
  const sorted = new Map<string, Grant[]>();
  for (const grant of grants) {
    for (const key of grant.keys) sorted.set(key, [...(sorted.get(key) ?? []), grant]);
  }
  return sorted;
}

/** Two holders of one key at the same moment. */
function overlaps(grants: readonly Grant[]): readonly string[] {
  const violations: string[] = [];
  for (const [key, ofKey] of byKey(grants)) {
    let last: Grant | undefined;
    for (const grant of ofKey.filter(wasSeen).sort((a, b) => a.from - b.from)) {
      if (last !== undefined && grant.from <= last.to) {
        const ms = (Math.min(last.to, grant.to) - grant.from).toFixed(1);
        violations.push(
          `overlap: key "${key}" was held by ${last.name} and ${grant.name} at once, from ${grant.from.toFixed(1)} on for ${ms} ms`,
        );
      }
      if (last === undefined || grant.to > last.to) last = grant;
    }
  }
  return violations;
}

/** Fencing tokens that were given twice, or that do not grow. */
function wrongTokens(grants: readonly Grant[]): readonly string[] {
  const violations: string[] = [];
  for (const [key, ofKey] of byKey(grants)) {
    const owners = new Map<number, Grant>();
    for (const grant of ofKey) {
      const owner = owners.get(grant.fencingToken);
      owners.set(grant.fencingToken, grant);
      if (owner === undefined) continue;
      violations.push(
        `fencing: token ${grant.fencingToken} of key "${key}" was given to ${owner.name} and ${grant.name}`,
      );
    }
    const seen = ofKey.filter(wasSeen);
    const ended = [...seen].sort((a, b) => a.to - b.to);
    let highest: Grant | undefined;
    for (const grant of seen.sort((a, b) => a.from - b.from)) {
      while (ended[0] !== undefined && ended[0].to < grant.from) {
        const before = ended.shift()!;
        if (highest === undefined || before.fencingToken > highest.fencingToken) highest = before;
      }
      if (highest === undefined || highest.fencingToken < grant.fencingToken) continue;
      violations.push(
        `fencing: key "${key}" went from ${highest.name} to ${grant.name}, and its token from ${highest.fencingToken} to ${grant.fencingToken}`,
      );
    }
  }
  return violations;
}

type Ask = ClientEvent & { readonly type: 'ask' };

const ANSWERS: ReadonlySet<string> = new Set(['granted', 'refused', 'failed']);

/** Callers who heard nothing, or too late. */
function lateAnswers(events: readonly HistoryEvent[], fates: Fates): readonly string[] {
  const open = new Map<string, Ask>();
  const violations: string[] = [];
  for (const event of events) {
    if (event.type === 'ask') open.set(nameOf(event), event);
    if (!('ask' in event) || !ANSWERS.has(event.type)) continue;
    const name = nameOf(event);
    const ask = open.get(name);
    if (ask === undefined || !open.delete(name)) continue;
    const tookMs = event.at - ask.at - stoppedMs(ask.client, ask.at, event.at, fates);
    if (tookMs > ask.waitMs + SLACK_MS) {
      violations.push(
        `late: ${name} (${ask.how}) was to hear within ${ask.waitMs} ms, and heard after ${tookMs.toFixed(0)} ms: ${event.type}`,
      );
    }
  }
  for (const [name, { client, how }] of open) {
    if (!fates.killed.has(client)) violations.push(`late: ${name} (${how}) never heard anything`);
  }
  return violations;
}

/** For how long of a time a process was stopped. */
function stoppedMs(client: string, from: number, to: number, { stops }: Fates): number {
  return (stops.get(client) ?? [])
    .map(([stop, goOn]) => Math.max(0, Math.min(goOn, to) - Math.max(stop, from)))
    .reduce((sum, ms) => sum + ms, 0);
}

function clientsThatDidNotEnd(
  events: readonly HistoryEvent[],
  { killed }: Fates,
): readonly string[] {
  const left = new Set<string>();
  for (const event of events) {
    if (event.type === 'started') left.add(event.client);
    if (event.type === 'ended') left.delete(event.client);
  }
  return [...left]
    .filter((client) => !killed.has(client))
    .map((client) => `unfinished: client ${client} did not shut down`);
}

/** What may be on a server when everybody has gone: the last fencing token of a key, for a while, and the guard's own key. */
function mayStay({ name, ttlMs }: LeftKey): boolean {
  return (/fence\}?$/.test(name) && ttlMs >= 0) || (name.includes('epoch') && ttlMs === -1);
}

const describeLeft = ({ node, name, ttlMs }: LeftKey): string =>
  `left behind: "${name}" on server ${node} (PTTL ${ttlMs})`;

/** Reasons why a run without violations would prove nothing. */
function vacuities({ plan, events }: History): readonly string[] {
  const grantedAt = events.flatMap((event) => (event.type === 'granted' ? [event.at] : []));
  const grantsBetween = (from: number, to: number): number =>
    grantedAt.filter((at) => at > from && at < to).length;
  const violations: string[] = [];

  const fewest = Math.ceil((plan.lengthMs / 1_000) * FEWEST_GRANTS_A_SECOND);
  if (grantedAt.length < fewest) {
    violations.push(`vacuous: ${grantedAt.length} grants, of at least ${fewest}`);
  }

  let grantsWithoutNode = 0;
  for (const step of plan.steps) {
    const begun = events.find((event) => event.type === 'fault' && event.step === step.step)?.at;
    const healed = events.find((event) => event.type === 'healed' && event.step === step.step)?.at;
    if (begun === undefined || healed === undefined) {
      violations.push(`vacuous: step ${step.step} was not done (${describeStep(step)})`);
    } else {
      if (grantsBetween(healed, Infinity) === 0) {
        violations.push(
          `vacuous: no grant after step ${step.step} was over (${describeStep(step)})`,
        );
      }
      if (step.kind === 'node-killed') grantsWithoutNode += grantsBetween(begun, healed);
    }
  }
  if (plan.steps.some(({ kind }) => kind === 'node-killed') && grantsWithoutNode === 0) {
    violations.push('vacuous: no grant while one of the servers was down');
  }
  return violations;
}
