/**
 * Says from the history of a run whether the locks kept their promises. It knows nothing of the library: what it believes is what the
 * processes wrote down.
 */
import { clientsThatDidNotEnd, type Fates, lateAnswers } from './answers.js';
import { detachViolations, partsOf, withLeases } from './detached.js';
import { extentOf, unseen } from './extent.js';
import { grantsOf } from './grants.js';
import type { History, LeftKey } from './history.js';
import { leaderViolations } from './leaders.js';
import { repeatedWork } from './once-work.js';
import { describeStep } from './plan.js';
import { overlaps, wrongTokens } from './safety.js';

/** Fewer grants than these for each second of faults say that nothing was tested. */
const FEWEST_GRANTS_A_SECOND = 5;

/** Among so many grants are some of all kinds. */
const MANY_GRANTS = 300;

/** All violations, in words; none if the run was as it should be. */
export function check(history: History): readonly string[] {
  const { events, plan } = history;
  const fates = fatesOf(history);
  const calls = partsOf(events);
  const grants = withLeases(grantsOf(calls, fates.killed), events);
  return [
    ...overlaps(grants),
    ...wrongTokens(grants),
    ...detachViolations(events, () => plan.nodes === 1 && plan.mode === 'clocks-set-back'),
    ...leaderViolations(events, fates.killed),
    // "If Redis loses its data, it forgets what was done."
    ...(plan.steps.some(({ kind }) => FORGETS.has(kind)) ? [] : repeatedWork(events)),
    ...lateAnswers(calls, fates),
    ...clientsThatDidNotEnd(events, fates),
    ...history.left.filter((key) => !mayStay(key, fates)).map(describeLeft),
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

const FORGETS: ReadonlySet<string> = new Set(['node-killed', 'node-restarted']);

/**
 * What may be on a server when everybody has gone: the last fencing token of a key, and what has become of work, for a while, and the
 * guard's own key. Who is killed while it waits leaves its place in line, and the names of several keys, for 15 s after the lease.
 */
function mayStay({ name, ttlMs }: LeftKey, { killed }: Fates): boolean {
  if (/queue(\}?:holdfast:|\}?$)/.test(name))
    return killed.size > 0 && ttlMs >= 0 && ttlMs <= 20_000;
  return (/(fence|once)\}?$/.test(name) && ttlMs >= 0) || (name.includes('epoch') && ttlMs === -1);
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

  if (grantedAt.length >= MANY_GRANTS) {
    const wanted = plan.nodes === 1 ? (['attached', 'terms'] as const) : (['terms'] as const);
    violations.push(...unseen(extentOf(events), wanted, grantedAt.length));
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
