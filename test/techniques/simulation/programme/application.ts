import type { LockEngine } from '../../../../lib/engine/lock-engine.js';
import { LockStoreUnavailableError } from '../../../../lib/errors.js';
import type { History } from '../history.js';
import type { CallerPlan, Intervention } from '../scenario.js';
import { SimSource } from '../world/sim-client.js';
import type { SimProcess } from '../world/sim-process.js';
import { Callers } from './callers.js';
import type { Parcel, Send } from './detaching.js';
import { engineOf, type EngineOptions } from './engine.js';
import { PlannedFailure } from './failures.js';
import type { Holdings } from './holdings.js';
import { Operating } from './operating.js';
import { SimDriver } from './sim-driver.js';

/** Until a socket that was closed is gone, whatever the server does. */
const CLOSED_WITHIN_MS = 1_000;

export interface ApplicationOptions extends EngineOptions {
  readonly history: History;
  readonly holdings: Holdings;
  /** It says in the store who it is, so that its locks can be ended by name. */
  readonly isKnown: boolean;
  readonly send: Send;
}

/** What runs in a process: the library, and callers that use it. */
export class Application {
  readonly process: SimProcess;
  readonly #options: ApplicationOptions;
  readonly #engine: LockEngine;
  readonly #driver: SimDriver | undefined;
  readonly #callers: Callers;
  #state: 'running' | 'closing' | 'ended' = 'running';

  constructor(options: ApplicationOptions) {
    const { process, history, holdings, isKnown, send } = options;
    const client = process.name;
    const machine = { host: process.machine, pid: 1, application: client, version: undefined };
    this.process = process;
    this.#options = options;
    const warn = (message: string): void => {
      history.record({ type: 'warned', client, message });
    };
    const { network, addresses, service } = options;
    this.#driver =
      service.hasDriver === true
        ? new SimDriver(new SimSource(process, network, addresses[0]!))
        : undefined;
    const engineOptions = { ...options, driver: this.#driver };
    this.#engine = engineOf(engineOptions, {
      runtime: process.runtime,
      ...(isKnown && { machine }),
      log: {
        warn,
        error: (error, cause) => {
          if (cause instanceof PlannedFailure) return;
          // A candidate whose request was refused, as every call is then.
          if (cause instanceof LockStoreUnavailableError) warn(String(error));
          else history.record({ type: 'unhandled', error: String(error) });
        },
      },
    });
    this.#callers = new Callers({ engine: this.#engine, process, history, holdings, send });
    process.onResume = () => {
      history.record({ type: 'resumed', client });
      holdings.lookAt(process);
    };
  }

  /** What its callers have not begun with. */
  get unfinished(): readonly CallerPlan[] {
    return this.#callers.unfinished;
  }

  get hasEnded(): boolean {
    return this.#state === 'ended' || this.process.isDead;
  }

  async run(plans: readonly CallerPlan[]): Promise<void> {
    const { history } = this.#options;
    history.record({ type: 'started', client: this.process.name });
    await this.#engine.open();
    history.record({ type: 'opened', client: this.process.name });
    await this.#callers.run(plans);
    await this.shutDown();
  }

  /** SIGTERM. */
  async shutDown(): Promise<void> {
    if (this.#state !== 'running') return;
    this.#state = 'closing';
    const { history, process } = this.#options;
    const client = process.name;
    history.record({ type: 'closing', client });
    this.#callers.stop();
    this.#engine.refuseWaiting();
    await this.#engine.shutdown();
    this.#driver?.close();
    this.#state = 'ended';
    history.record({ type: 'ended', client });
    await this.#callers.hasStopped;
    process.applicationRuntime.setTimer(() => {
      const left = { timers: process.runtime.timers, connections: process.connections.size };
      if (left.timers + left.connections > 0)
        history.record({ type: 'left-open', client, ...left });
    }, CLOSED_WITHIN_MS);
  }

  /** A lock that was detached arrives. */
  receive(parcel: Parcel): Promise<void> {
    return this.#callers.receive(parcel);
  }

  /** An operator looks, and does something about it later. */
  async intervene(intervention: Intervention, number: number): Promise<void> {
    const { process, history } = this.#options;
    await new Operating({ engine: this.#engine, process, history }).intervene(intervention, number);
  }

  /** An operator ends whatever lease the key has, and its holder is told. */
  async forceRelease(key: string): Promise<void> {
    const intervention = { by: 'an operator', reason: 'simulated' };
    await this.#engine.forceRelease(key, intervention).catch(() => undefined);
  }
}
