import { setTimeout as sleep } from 'node:timers/promises';
import { LockEngine } from '../../../lib/engine/lock-engine.js';
import type { LockModuleOptions } from '../../../lib/options/lock-module-options.js';
import { systemRuntime } from '../../../lib/time/runtime.js';

/** Between two calls for locks, in ms. */
const EVERY_MS = 20;

const MACHINE = { application: 'shop', host: 'web-1', pid: 42, version: '1.0.0' };

/** An engine with everything that it logs. */
export class LoggedLocks extends LockEngine {
  /** What was logged, without the ports of servers. */
  readonly logged: readonly string[];
  #traffic: Promise<void> | undefined;
  #isBusy = false;

  constructor(options: LockModuleOptions) {
    const logged: string[] = [];
    const log = (message: unknown): void => {
      logged.push(String(message).replaceAll(/127\.0\.0\.1:\d+/g, 'HOST'));
    };
    super(options, { runtime: systemRuntime, log: { warn: log, error: log }, machine: MACHINE });
    this.logged = logged;
  }

  static async open(options: LockModuleOptions): Promise<LoggedLocks> {
    const locks = new LoggedLocks(options);
    await locks.open();
    return locks;
  }

  /** Asks for locks again and again, fifty times a second, whatever comes of it. */
  keepsAsking(): void {
    this.#isBusy = true;
    this.#traffic = (async () => {
      for (let call = 0; this.#isBusy; call += 1) {
        const lock = await this.tryAcquire(`order:${String(call)}`).catch(() => undefined);
        await lock?.release().catch(() => undefined);
        await sleep(EVERY_MS);
      }
    })();
  }

  async end(): Promise<void> {
    this.#isBusy = false;
    await this.#traffic;
    await this.shutdown(0);
  }
}
