/** What a run wrote down, one event a line. */
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Plan } from './plan.js';

/**
 * Milliseconds on CLOCK_MONOTONIC. On Linux and macOS that is one clock for all processes of the machine, which nobody sets and
 * which goes on while a process is stopped: stamps of different processes can be compared.
 */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6;

/** What a caller in a client process did and saw. `ask` counts the requests of a client. */
export type ClientEvent = { readonly at: number; readonly client: string } & (
  | {
      readonly type: 'ask';
      readonly ask: number;
      readonly how: string;
      readonly keys: readonly string[];
      /** After so long the caller wants an answer, whatever it is. */
      readonly waitMs: number;
      /** Default: 'exclusive'. */
      readonly mode?: string;
      /** Of those that a limit counts. Default 1. */
      readonly places?: number;
      readonly minHoldMs?: number;
      /** Of one that replaces the holder: for how long the work of that may go on. */
      readonly replaceWaitMs?: number;
      /** Of one that attaches a lock: who has detached it, and how that is numbered. */
      readonly sender?: string;
      readonly part?: number;
      /** Of a candidate: its number among the candidates of its process. */
      readonly candidate?: number;
    }
  | {
      readonly type: 'granted';
      readonly ask: number;
      readonly keys: readonly string[];
      readonly fencingToken: number;
      /** By how much the token was ahead of the clock. */
      readonly aheadMs?: number;
    }
  /**
   * The lock said that it was held, and until when. `at` was read before it was asked: the process may be stopped between any two
   * instructions, and an instant read afterwards might be one at which nobody has looked.
   */
  | { readonly type: 'held'; readonly ask: number; readonly until: number }
  | { readonly type: 'lost'; readonly ask: number; readonly reason: string }
  /** Right before the release is asked for. */
  | { readonly type: 'releasing'; readonly ask: number }
  | { readonly type: 'released'; readonly ask: number; readonly result: string }
  | { readonly type: 'refused'; readonly ask: number }
  | { readonly type: 'failed'; readonly ask: number; readonly error: string }
  /** Of work that is to be done once: an attempt begins. */
  | {
      readonly type: 'attempt';
      readonly ask: number;
      readonly attempt: number;
      readonly isLast: boolean;
      readonly fencingToken: number;
    }
  /** What `runOnce` returned. */
  | {
      readonly type: 'once';
      readonly ask: number;
      readonly outcome: string;
      readonly attempts: number;
      readonly value?: unknown;
    }
  /** Its holder gives it up, for somebody else to go on with; `part` is the number of the time in which nobody holds it. */
  | { readonly type: 'detaches'; readonly ask: number; readonly part: number }
  /** The store keeps it for the process that attaches it. */
  | {
      readonly type: 'detached';
      readonly ask: number;
      readonly part: number;
      readonly keys: readonly string[];
      readonly mode: string;
      readonly places?: number;
      readonly fencingToken: number;
      readonly forMs: number;
    }
  /** A leader was notified that its term is over. `after` is what its signal aborted with. */
  | {
      readonly type: 'term-over';
      readonly ask: number;
      readonly term: number;
      readonly reason: string;
      readonly after: string;
    }
  /** At even intervals, as far as its event loop is free. */
  | { readonly type: 'beat' }
  /** Its service has shut down. */
  | { readonly type: 'ended'; readonly longestBlockMs?: number }
);

/** What was done to servers and clients, and when it was over. */
export type RunEvent = { readonly at: number } & (
  | { readonly type: 'started'; readonly client: string }
  /** Before it is done; `client` is the process that it is done to. */
  | { readonly type: 'fault'; readonly step: number; readonly client?: string }
  /** After it was undone; of a client that was killed, when another has taken its place. */
  | { readonly type: 'healed'; readonly step: number }
  /** A client was ended by SIGKILL. */
  | { readonly type: 'killed'; readonly client: string }
);

export type HistoryEvent = ClientEvent | RunEvent;

/** Of any test: it may know other events besides those of callers. */
export interface AnyEvent {
  readonly type: string;
  readonly at: number;
}

/** What callers did and saw. */
export type CallEvent = Extract<ClientEvent, { readonly ask: number }>;

export const callEvents = (events: readonly AnyEvent[]): readonly CallEvent[] =>
  events.filter((event): event is CallEvent => 'client' in event && 'ask' in event);

/** A key that is on a server when all is over. */
export interface LeftKey {
  readonly node: number;
  readonly name: string;
  /** As PTTL answers: -1 for a key without TTL. */
  readonly ttlMs: number;
}

export interface History {
  readonly plan: Plan;
  readonly events: readonly HistoryEvent[];
  readonly left: readonly LeftKey[];
}

type WithoutStamp<Event> = Event extends unknown ? Omit<Event, 'at'> : never;

/** Writes events to a file of its own, each before it goes on: what a killed process saw is in its file. */
export class Recorder {
  readonly #file: number;

  constructor(folder: string, name: string) {
    this.#file = openSync(join(folder, `${name}.jsonl`), 'a');
  }

  record(event: WithoutStamp<HistoryEvent>, at = now()): void {
    writeSync(this.#file, `${JSON.stringify({ at, ...event })}\n`);
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** All events of a folder, by time. */
export function readEvents(folder: string): readonly HistoryEvent[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))
    .filter((line) => line.endsWith('}')) // the last line of a killed process may be torn
    .map((line) => JSON.parse(line) as HistoryEvent)
    .sort((a, b) => a.at - b.at);
}
