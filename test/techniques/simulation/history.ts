/** What was asked, believed and done in a world, in the order in which it happened. A checker sees this and the scenario, and nothing else. */
import type { ClientEvent } from '../faults/history.js';
import type { World } from './world/world.js';

type RunEvent = { readonly at: number } & (
  | { readonly type: 'fault'; readonly fault: number }
  | { readonly type: 'healed'; readonly fault: number }
  | {
      readonly type: 'started' | 'opened' | 'closing' | 'killed' | 'paused';
      readonly client: string;
    }
  | { readonly type: 'resumed'; readonly client: string }
  /** It asks for another TTL than it has. */
  | { readonly type: 'extends'; readonly client: string; readonly ask: number }
  /** It asks for another limit of a key; and knows that it was set. */
  | {
      readonly type: 'sets-limit' | 'limit-set';
      readonly client: string;
      readonly ask: number;
      readonly key: string;
      readonly limit: number;
    }
  /** Its keys stay taken for so long; of a lease that was over by then, if the server has not forgotten it yet. */
  | {
      readonly type: 'kept' | 'perhaps-kept';
      readonly client: string;
      readonly ask: number;
      readonly forMs: number;
    }
  /** An instance becomes a candidate, for the first time or again. What follows is in the call of that number. */
  | {
      readonly type: 'stands';
      readonly client: string;
      readonly lead: number;
      /** The number of its first call. */
      readonly candidate: number;
      readonly ttlMs: number;
      readonly rotateEveryMs?: number;
    }
  /** A leader ends its term itself. */
  | {
      readonly type: 'ends-term';
      readonly client: string;
      readonly lead: number;
      readonly how: 'stepped-down' | 'failed';
    }
  /** A candidate is notified that its term is over. */
  | {
      readonly type: 'term-closed';
      readonly client: string;
      readonly lead: number;
      readonly reason: string;
      readonly error: string;
      /** Whether it still says that it leads. */
      readonly leads: boolean;
    }
  /** A candidate does not stand any more. */
  | { readonly type: 'stops'; readonly client: string; readonly candidate: number }
  /** An operator looks at what is held; has seen it; and intervenes. `operation` is the number of the fault. */
  | {
      readonly type: 'operator-looks' | 'operator-acts';
      readonly client: string;
      readonly operation: number;
    }
  | {
      readonly type: 'operator-saw';
      readonly client: string;
      readonly operation: number;
      /** Of work that is done once. */
      readonly state?: string;
    }
  | {
      readonly type: 'operator-done';
      readonly client: string;
      readonly operation: number;
      readonly status: string;
    }
  /** Its lease is over, and its signal has not aborted. */
  | { readonly type: 'overdue'; readonly client: string; readonly ask: number }
  /** It believes to hold a key for longer than a majority of the servers will keep it. */
  | {
      readonly type: 'uncovered';
      readonly client: string;
      readonly ask: number;
      readonly key: string;
      readonly believedMs: number;
      readonly keptMs: number;
    }
  /** What nobody caught. */
  | { readonly type: 'unhandled'; readonly error: string }
  | { readonly type: 'warned'; readonly client: string; readonly message: string }
  /** After its shutdown. */
  | {
      readonly type: 'left-open';
      readonly client: string;
      readonly timers: number;
      readonly connections: number;
    }
  /** Of a lease, when everybody has gone. */
  | { readonly type: 'orphan'; readonly server: number; readonly name: string }
  | {
      readonly type: 'left-key';
      readonly server: number;
      readonly name: string;
      /** As PTTL answers, long after everybody has gone. */
      readonly ttlMs: number;
    }
  /** Under another lock of the same keys, in its section. */
  | {
      readonly type: 'nested';
      readonly client: string;
      readonly ask: number;
      readonly outer: number;
      readonly fencingToken: number;
      readonly outerToken: number;
    }
  /** It asked for keys that the section around it holds, and was sent away. */
  | {
      readonly type: 'not-nested';
      readonly client: string;
      readonly ask: number;
      readonly outer: number;
    }
);

export type SimEvent = ClientEvent | RunEvent;

type WithoutStamp<Event> = Event extends unknown ? Omit<Event, 'at'> : never;

/** So that no two events have the same time, in ms. */
const NEXT_MS = 1e-6;

export class History {
  readonly events: SimEvent[] = [];
  readonly #world: World;
  #lastMs = -1;

  constructor(world: World) {
    this.#world = world;
  }

  record(event: WithoutStamp<SimEvent>): void {
    const at = Math.max(this.#world.nowMs, this.#lastMs + NEXT_MS);
    this.#lastMs = at;
    this.events.push({ at, ...event });
    const { digest } = this.#world;
    digest.addText(event.type);
    digest.addNumber(at * 1_000);
    if ('ask' in event) digest.addNumber(event.ask);
    if ('fencingToken' in event) digest.addNumber(event.fencingToken);
  }
}
