import { LockAdmin } from '../../../../lib/admin/lock-admin.js';
import type { LockEngine } from '../../../../lib/engine/lock-engine.js';
import { LockError } from '../../../../lib/errors.js';
import type { History } from '../history.js';
import type { Intervention } from '../scenario.js';
import type { SimProcess } from '../world/sim-process.js';
import { sleep } from './sleep.js';

interface Dependencies {
  readonly engine: LockEngine;
  readonly process: SimProcess;
  readonly history: History;
}

/** What an operator has seen, and does about it later. */
interface Plan {
  /** Of work that is done once. */
  readonly state?: string;
  readonly act: () => Promise<{ readonly status: string }>;
}

const REQUEST = { by: 'an operator', reason: 'simulated' };

/** An operator looks at locks in a process, and ends them or forgets work after a while. */
export class Operating {
  readonly #deps: Dependencies;
  readonly #admin: LockAdmin;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
    this.#admin = new LockAdmin(dependencies.engine);
  }

  /** Never rejects. */
  async intervene(intervention: Intervention, number: number): Promise<void> {
    const { process, history } = this.#deps;
    const facts = { client: process.name, operation: number };
    try {
      history.record({ type: 'operator-looks', ...facts });
      const { state, act } = await this.#look(intervention);
      history.record({ type: 'operator-saw', ...facts, ...(state !== undefined && { state }) });
      await sleep(process.applicationRuntime, intervention.afterMs);
      history.record({ type: 'operator-acts', ...facts });
      const { status } = await act();
      history.record({ type: 'operator-done', ...facts, status });
    } catch (error) {
      if (!(error instanceof LockError)) throw error;
      history.record({ type: 'operator-done', ...facts, status: 'failed' });
    }
  }

  async #look(intervention: Intervention): Promise<Plan> {
    const admin = this.#admin;
    if (intervention.kind === 'instance-released') {
      const host = `p${String(intervention.victim)}`;
      const seen = (await admin.instances()).find((each) => each.host === host);
      const nobody = { status: 'nothing' };
      return {
        act: () =>
          seen === undefined ? Promise.resolve(nobody) : admin.releaseInstance(seen, REQUEST),
      };
    }
    const seen = await admin.describe(intervention.key);
    if (intervention.kind === 'seen-released') return { act: () => admin.release(seen, REQUEST) };
    return {
      ...(seen.once !== undefined && { state: seen.once.state }),
      act: () => admin.forgetOnce(seen, REQUEST),
    };
  }
}
