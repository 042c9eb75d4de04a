import type {
  BeginOutcome,
  BeginRequest,
  FinishOutcome,
  FinishRequest,
  KeepRequest,
  OnceStore,
} from '../../lib/store/once-store.js';
import { scriptedEngine } from '../engine/scripted-engine.js';

/** Records what it is asked, and says yes to everything unless the test says otherwise. */
class ScriptedOnce implements OnceStore {
  readonly begun: BeginRequest[] = [];
  readonly kept: KeepRequest[] = [];
  readonly finished: FinishRequest[] = [];
  onBegin: () => BeginOutcome | Promise<BeginOutcome> = () => ({ status: 'begun', attempt: 1 });
  onKeep: () => FinishOutcome = () => ({ status: 'accepted' });
  onFinish: () => FinishOutcome | Promise<FinishOutcome> = () => ({ status: 'accepted' });

  async begin(request: BeginRequest): Promise<BeginOutcome> {
    this.begun.push(request);
    return this.onBegin();
  }

  async keep(request: KeepRequest): Promise<FinishOutcome> {
    this.kept.push(request);
    return this.onKeep();
  }

  async finish(request: FinishRequest): Promise<FinishOutcome> {
    this.finished.push(request);
    return this.onFinish();
  }
}

/** An engine whose store keeps account of once-only work as the test says. */
export function scriptedOnce(options: Parameters<typeof scriptedEngine>[0] = {}) {
  const engine = scriptedEngine(options);
  const once = new ScriptedOnce();
  Object.assign(engine.store, { once });
  return { ...engine, once };
}
