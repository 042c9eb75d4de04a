import type { LockEngine } from '../../../../lib/engine/lock-engine.js';
import type { History } from '../history.js';
import { Calls } from '../programme/calls.js';
import type { CallersOptions } from '../programme/callers.js';
import { engineOf, type EngineOptions } from '../programme/engine.js';
import type { World } from '../world/world.js';
import type { Database } from './database.js';
import type { News } from './facts.js';
import { KEY, type Action } from './setup.js';

/** So long a caller waits in line. */
const WAIT_MS = 600_000;

interface ExplorerProcessOptions
  extends EngineOptions, Pick<CallersOptions, 'history' | 'holdings'> {
  readonly world: World;
  /** Its number in the picture. */
  readonly index: number;
  readonly ttlMs: number;
  readonly database: Database;
  readonly tell: (news: News) => void;
}

/** One call, as far as it has come. */
interface Call {
  readonly name: string;
  readonly mode: string;
  readonly isCareless: boolean;
  token?: number;
  isLost?: true;
}

/** What the simulation records of worlds. */
export type Recorded = Parameters<History['record']>[0];

type Told = Extract<Recorded, { readonly ask: number }>;

/** A process of the picture: the library, and callers that use it. */
export class ExplorerProcess {
  readonly #options: ExplorerProcessOptions;
  readonly #engine: LockEngine;
  readonly #calls: Calls;
  readonly #asked = new Map<number, Call>();
  readonly #opened: Promise<void>;
  #nextIsCareless = false;

  constructor(options: ExplorerProcessOptions) {
    const { process, index, history, holdings, tell } = options;
    this.#options = options;
    const ignore = (): void => undefined;
    this.#engine = engineOf(options, {
      runtime: process.runtime,
      log: { warn: ignore, error: ignore },
    });
    // No lock of the picture goes to another process.
    this.#calls = new Calls({ engine: this.#engine, process, history, holdings, send: ignore });
    process.onResume = () => {
      tell({ type: 'resumes', process: index });
    };
    this.#listen();
    tell({ type: 'starts', process: index });
    this.#opened = this.#engine.open().then(() => {
      tell({ type: 'ready', process: index });
    });
  }

  async lock({ mode, workMs, isCareless }: Extract<Action, { kind: 'lock' }>): Promise<void> {
    await this.#opened;
    this.#nextIsCareless = isCareless === true;
    await this.#calls.make({
      ...{ how: 'acquire', pauseMs: 0, keys: [KEY], mode, holdMs: workMs },
      ...{ ttlMs: this.#options.ttlMs, waitMs: WAIT_MS },
      ...(isCareless && { ignoresSignal: true }),
    });
  }

  /** What its callers see. */
  hear(event: Told): void {
    const call = this.#callOf(event);
    const { tell } = this.#options;
    const names = { process: this.#options.index, call: call.name };
    switch (event.type) {
      case 'ask':
        tell({ type: 'asks', ...names, mode: call.mode });
        break;
      case 'granted':
        call.token = event.fencingToken;
        tell({ type: 'granted', ...names, token: call.token });
        break;
      case 'held':
        tell({ type: 'holds', ...names, untilMs: event.until });
        break;
      case 'releasing':
        tell({ type: 'ends work', ...names });
        this.#write(call);
        break;
      case 'released':
        tell({ type: 'released', ...names, isInTime: event.result === 'true' });
        break;
      case 'refused':
        tell({ type: 'refused', ...names, why: 'the wait is over' });
        break;
      case 'failed':
        tell({ type: 'failed', ...names, why: event.error });
        break;
      default: // What only a checker wants to know.
    }
  }

  #callOf(event: Told): Call {
    const known = this.#asked.get(event.ask);
    if (known !== undefined) return known;
    const call = {
      name: `${this.#options.process.name}#${String(event.ask)}`,
      mode: event.type === 'ask' ? (event.mode ?? 'exclusive') : 'exclusive',
      isCareless: this.#nextIsCareless,
    };
    this.#asked.set(event.ask, call);
    return call;
  }

  /** Its work ends with a write, unless it knows that it has lost its lock. Readers do not write. */
  #write({ name, mode, token, isLost, isCareless }: Call): void {
    const { index, database, tell } = this.#options;
    if (mode !== 'exclusive' || token === undefined || (isLost && !isCareless)) return;
    const facts = { process: index, call: name, token };
    tell({ type: 'writes', ...facts, ...database.write(token) });
  }

  /** What the library says of itself. */
  #listen(): void {
    const { world, process, index, tell } = this.#options;
    const named = (token: number, hear: (call: Call) => void): void => {
      const call = [...this.#asked.values()].find((each) => each.token === token);
      if (call !== undefined) hear(call);
    };
    const untilMs = (leftMs: number): number => world.nowMs + leftMs / process.clock.rate;
    for (const type of ['renewed', 'jeopardy'] as const)
      this.#engine.on(type, ({ fencingToken, remainingMs }) => {
        named(fencingToken, ({ name }) => {
          tell({ type, process: index, call: name, untilMs: untilMs(remainingMs) });
        });
      });
    this.#engine.on('lost', ({ fencingToken, reason }) => {
      named(fencingToken, (call) => {
        call.isLost = true;
        tell({ type: 'lost', process: index, call: call.name, reason });
      });
    });
  }
}
