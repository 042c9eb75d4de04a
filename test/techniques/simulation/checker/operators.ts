import { nameOf, type Grant } from '../../faults/grants.js';
import type { SimEvent } from '../history.js';
import type { Intervention, Scenario } from '../scenario.js';
import { isCalmBeside, type Facts } from './facts.js';
import { TRIPS_TO_THE_LINE } from './order.js';

/** Sooner than any server replies. */
const AT_ONCE_MS = 0.05;

/** What an operator saw and did, by the clock of the world; `Infinity` for what did not come about. */
export interface Operation {
  readonly fault: Intervention;
  readonly client: string;
  readonly from: number;
  sawAt: number;
  actsAt: number;
  doneAt: number;
  /** Of work that is done once. */
  state?: string;
  status?: string;
}

/** Interventions of operators, beside what docs/internals/promises.md and the TSDoc of `LockAdmin` say. */
export function operatorViolations(scenario: Scenario, facts: Facts): readonly string[] {
  const operations = operationsOf(scenario, facts.events);
  const { latencyUs, jitterUs } = scenario.network;
  const lateMs = (TRIPS_TO_THE_LINE * (latencyUs + jitterUs)) / 1_000 + 5;
  return [
    ...(facts.events.some(({ type }) => type === 'lost') ? unexplained(facts, operations) : []),
    ...operations.flatMap((operation) => keptOn(operation, facts, lateMs)),
    ...operations
      .filter((operation) => !operations.some((other) => forgetsMeanwhile(other, operation)))
      .flatMap((operation) => wronglyForgotten(operation, facts, lateMs)),
  ];
}

export function operationsOf(
  { faults }: Scenario,
  events: readonly SimEvent[],
): readonly Operation[] {
  const operations = new Map<number, Operation>();
  for (const event of events) {
    if (!('operation' in event)) continue;
    const { operation: number, client, at } = event;
    const fault = faults[number] as Intervention;
    const never = { sawAt: Infinity, actsAt: Infinity, doneAt: Infinity };
    const operation = operations.get(number) ?? { ...{ fault, client, from: at }, ...never };
    operations.set(number, operation);
    if (event.type === 'operator-saw') {
      operation.sawAt = at;
      if (event.state !== undefined) operation.state = event.state;
    }
    if (event.type === 'operator-acts') operation.actsAt = at;
    if (event.type === 'operator-done')
      Object.assign(operation, { doneAt: at, status: event.status });
  }
  return [...operations.values()];
}

/** "Ends the locks of the holders that the operator saw", and no others: of those that came later, none is `force-released`. */
function unexplained(
  { events, grants, done }: Facts,
  operations: readonly Operation[],
): readonly string[] {
  return events.flatMap((event) => {
    if (event.type !== 'lost' || event.reason !== 'force-released') return [];
    const grant = grants.find(({ name }) => name === nameOf(event));
    if (grant === undefined) return [];
    const isForced = done.some(
      ({ fault, at }) =>
        fault.kind === 'force-released' && at < event.at && grant.keys.includes(fault.key),
    );
    // Whose process had it before, in a turn, has it since it was granted, and the operator saw another one.
    const isTurn = grants.some(
      ({ client, keys, endedAt = Infinity }) =>
        client === grant.client &&
        Math.abs(endedAt - grant.grantedAt) < AT_ONCE_MS &&
        keys.some((key) => grant.keys.includes(key)),
    );
    const since = isTurn ? grant.grantedAt : grant.askedAt;
    // Before it is refused: "If its reply is lost, the result may be `refused`, although the operator ended the lock."
    const isMeant = operations.some(
      (operation) =>
        operation.actsAt < event.at &&
        (operation.status !== 'refused' || event.at < operation.doneAt) &&
        ends(operation, grant, since),
    );
    return isForced || isMeant
      ? []
      : [
          `operator: ${grant.name} was released by force, and no operator had seen it hold the keys`,
        ];
  });
}

/** Whether it may be one of the locks that an operator ends. */
function ends(
  { fault, sawAt, doneAt }: Operation,
  { client, keys }: Grant,
  since: number,
): boolean {
  if (fault.kind === 'seen-released') return keys.includes(fault.key) && since < sawAt;
  return fault.kind === 'instance-released' && isOf(client, fault.victim) && since < doneAt;
}

/** A process that takes the place of another one runs on the same machine. */
const isOf = (client: string, machine: number): boolean =>
  client.split('.')[0] === `p${String(machine)}`;

/** "A holder is notified at once: its signal aborts." */
function keptOn(operation: Operation, facts: Facts, lateMs: number): readonly string[] {
  const { fault, client, from, doneAt, status } = operation;
  if (doneAt === Infinity || !isCalmBeside(facts, from, doneAt)) return [];
  const isMeant = ({ keys, client: holder }: Grant): boolean =>
    fault.kind === 'seen-released'
      ? keys.includes(fault.key)
      : fault.kind === 'instance-released' && isOf(holder, fault.victim);
  return facts.grants
    .filter(
      (grant) =>
        isMeant(grant) &&
        grant.grantedAt < from - lateMs &&
        grant.to > doneAt + lateMs &&
        // A lock that was detached meanwhile, and attached, is another lease.
        grant.lease === undefined,
    )
    .map(
      ({ name }) =>
        `operator: ${client} released what ${name} held (${fault.kind}: ${String(status)}), and ${name} held it after that`,
    );
}

/** The work begins anew then, and may come to the same state again. */
const forgetsMeanwhile = (other: Operation, { sawAt, actsAt }: Operation): boolean =>
  other.fault.kind === 'work-forgotten' && other.actsAt < actsAt && other.doneAt > sawAt;

/** "If the work has another state by now, nothing is done." */
function wronglyForgotten(
  { fault, client, sawAt, actsAt, state, status }: Operation,
  { events }: Facts,
  lateMs: number,
): readonly string[] {
  if (fault.kind !== 'work-forgotten' || status !== 'done' || state === 'done') return [];
  const asks = new Map(
    events.flatMap((event) =>
      event.type === 'ask' ? [[nameOf(event), event.keys[0]] as const] : [],
    ),
  );
  return events.flatMap((event) =>
    event.type === 'once' &&
    event.outcome === 'completed' &&
    asks.get(nameOf(event)) === fault.key &&
    event.at > sawAt &&
    event.at < actsAt - lateMs
      ? [
          `operator: ${client} saw work at "${fault.key}" that was not done, and has forgotten that ${nameOf(event)} has done it since`,
        ]
      : [],
  );
}
