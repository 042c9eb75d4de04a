import { nameOf } from '../../faults/grants.js';
import type { SimEvent } from '../history.js';
import type { Scenario } from '../scenario.js';
import type { Facts } from './facts.js';
import { TRIPS_TO_THE_LINE } from './order.js';

type Ask = SimEvent & { readonly type: 'ask' };

/**
 * "Who comes while a writer waits stands behind it, and is refused if it does not wait": readers who were let in although somebody whom
 * they keep out had waited before they came. Of single keys, and without faults.
 */
export function starvationViolations(
  scenario: Scenario,
  { events, done }: Facts,
): readonly string[] {
  if (done.length > 0 || !isPlain(scenario)) return [];
  const queue = new Queue(scenario);
  const violations: string[] = [];
  for (const event of events) {
    if (!('ask' in event)) continue;
    if (event.type === 'ask') queue.enter(event);
    else {
      const starved = event.type === 'granted' ? queue.starvedBy(event) : undefined;
      if (starved !== undefined)
        violations.push(
          `starved: ${event.client}#${event.ask} was let in to read "${starved.keys[0]!}", and ${starved.client}#${starved.ask} had waited since ${starved.at.toFixed(1)}`,
        );
      queue.answered(event);
    }
  }
  return violations;
}

interface ReadersInLine {
  readonly since: number;
  waiting: number;
  /** When the last of them gave up, if none waits. */
  goneAt: number;
}

type Answer = Exclude<Extract<SimEvent, { readonly ask: number }>, Ask>;

/** Who waits. */
class Queue {
  readonly #slackMs: number;
  readonly #clockDrift: number;
  readonly #asks = new Map<string, Ask>();
  readonly #waiting = new Map<string, Ask>();
  /**
   * Of the readers of a process that wait for a key: when the first of them came. All of them are let in with it, also one that
   * comes just after the last has gone: its place was called already.
   */
  readonly #lines = new Map<string, ReadersInLine>();
  /** When a process last had a key, or gave it back: who waits there stands in line anew. */
  readonly #metAt = new Map<string, number>();

  constructor({ network: { latencyUs, jitterUs }, service: { clockDrift } }: Scenario) {
    this.#clockDrift = clockDrift;
    this.#slackMs = (TRIPS_TO_THE_LINE * (latencyUs + jitterUs)) / 1_000 + 5;
  }

  enter(ask: Ask): void {
    this.#asks.set(nameOf(ask), ask);
    this.#waiting.set(nameOf(ask), ask);
    if (!isPatientReader(ask)) return;
    const line = this.#lines.get(placeOf(ask));
    if (line === undefined || ask.at - line.goneAt > this.#slackMs)
      this.#lines.set(placeOf(ask), { since: ask.at, waiting: 1, goneAt: Infinity });
    else {
      line.waiting += 1;
      line.goneAt = Infinity;
    }
  }

  /** Who should have kept this one out, if it is a reader. */
  starvedBy(event: Answer): Ask | undefined {
    const ask = this.#waiting.get(nameOf(event));
    if (ask?.mode !== 'shared') return undefined;
    const line = isPatientReader(ask) ? this.#lines.get(placeOf(ask)) : undefined;
    const before = Math.min(ask.at, line?.since ?? ask.at) - this.#slackMs;
    return [...this.#waiting.values()].find((other) => {
      if (other.waitMs === 0 || other.mode === 'shared' || other.keys[0] !== ask.keys[0])
        return false;
      // Its wait may be over by its own clock: it has left the line, and has not heard of it yet.
      if (other.at + other.waitMs * (1 - this.#clockDrift) < event.at) return false;
      const since = Math.max(other.at, this.#metAt.get(placeOf(other)) ?? 0);
      return since < before;
    });
  }

  answered(event: Answer): void {
    const name = nameOf(event);
    const ask = this.#asks.get(name);
    if (ask === undefined) return;
    this.#metAt.set(placeOf(ask), event.at);
    if (!this.#waiting.delete(name) || !isPatientReader(ask)) return;
    const line = this.#lines.get(placeOf(ask))!;
    line.waiting -= 1;
    if (line.waiting > 0) return;
    if (event.type === 'refused') line.goneAt = event.at;
    else this.#lines.delete(placeOf(ask));
  }
}

const isPatientReader = ({ mode, waitMs }: Ask): boolean => mode === 'shared' && waitMs > 0;

/** The line of a process at a key, of whatever mode. */
const placeOf = ({ client, keys }: Ask): string => `${client} ${keys[0]!}`;

const isPlain = ({ processes, service }: Scenario): boolean =>
  service.restartGuard === undefined &&
  processes.every(({ callers }) =>
    callers.every(({ operations }) =>
      operations.every(
        ({ keys, inner, blocksMs, autoExtend, maxHoldMs, detach }) =>
          keys.length === 1 &&
          inner === undefined &&
          detach === undefined &&
          blocksMs === undefined &&
          autoExtend === undefined &&
          maxHoldMs === undefined,
      ),
    ),
  );
