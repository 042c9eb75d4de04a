import { LockError } from '../../../lib/errors.js';
import type { History } from '../history.js';
import type { ModeChange } from '../scenario.js';
import type { SimProcess } from '../world/sim-process.js';
import type { Holdings, LockHolding } from './holdings.js';
import { errorName, recordFailure } from './failures.js';

interface Dependencies {
  readonly process: SimProcess;
  readonly history: History;
  readonly holdings: Holdings;
  /** The number of the next call. */
  readonly nextAsk: () => number;
}

/** Has locks go on in other modes, and writes down what comes of it: each change begins a part of the hold with a number of its own. */
export class ModeChanges {
  readonly #deps: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  /** Never rejects: what went wrong is in the history. */
  async make(change: ModeChange, holding: LockHolding): Promise<void> {
    if (change.to === holding.mode) return;
    if (change.to === 'exclusive') await this.#upgrade(change, holding);
    else if (holding.mode !== 'shared') await this.#downgrade(change.to, holding);
    this.look(holding);
  }

  /** Writes down which mode the lock says that it has. */
  look({ lock, ask, process }: LockHolding): void {
    if (!lock.isHeld) return;
    this.#deps.history.record({ type: 'mode', client: process.name, ask, mode: lock.mode });
  }

  async #upgrade({ waitMs = 0, patienceMs }: ModeChange, holding: LockHolding): Promise<void> {
    const { process, history, nextAsk } = this.#deps;
    const { lock, mode: holds } = holding;
    const ask = nextAsk();
    const client = process.name;
    const giveUp = new AbortController();
    const cancel =
      patienceMs === undefined
        ? () => undefined
        : process.applicationRuntime.setTimer(() => giveUp.abort(), patienceMs);
    history.record({
      ...{ type: 'ask', client, ask, how: 'upgrade', keys: lock.keys, mode: 'exclusive', holds },
      waitMs: Math.min(waitMs, patienceMs ?? Infinity),
    });
    try {
      await lock.upgrade({ wait: waitMs, signal: giveUp.signal });
      this.#changed(holding, ask, 'exclusive');
    } catch (error) {
      recordFailure(history, { client, ask }, error);
    } finally {
      cancel();
    }
  }

  /** "A downgrade counts from its call on." */
  async #downgrade(to: 'shared' | 'upgradeable', holding: LockHolding): Promise<void> {
    const { process, history, nextAsk } = this.#deps;
    const { lock } = holding;
    if (!lock.isHeld) return;
    this.#changed(holding, nextAsk(), to);
    const { ask } = holding;
    try {
      await lock.downgrade({ to });
    } catch (error) {
      if (!(error instanceof LockError)) throw error;
      history.record({ type: 'not-changed', client: process.name, ask, error: errorName(error) });
    }
  }

  #changed(holding: LockHolding, ask: number, mode: string): void {
    const { process, history, holdings } = this.#deps;
    const { lock, ask: continues } = holding;
    const { keys, fencingToken } = lock;
    holdings.look(holding);
    history.record({
      ...{ type: 'changed', client: process.name, ask, continues, keys, mode, fencingToken },
    });
    holding.ask = ask;
    holding.mode = mode;
    holdings.lookBeside(holding);
  }
}
