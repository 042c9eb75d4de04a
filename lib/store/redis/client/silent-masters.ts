import type { Scheduler } from '../../../time/scheduler.js';
import { TimeLimit } from '../../../time/time-limit.js';
import type { Master } from './redis-client.js';

/** A connection that has owed an answer for so long is dead, whatever TCP thinks; the next one may lead to another master. */
export const LONGEST_SILENCE_MS = 5_000;

/** How often it is looked at whether anything has arrived, in ms. */
const LOOK_MS = 500;

/**
 * Finds the connections of a Cluster that are dead. ioredis does not tell which master owes the reply to a request, and the other masters
 * reply meanwhile. So each master is pinged, and a connection over which nothing arrives is ended: the next request opens a new one.
 */
export class SilentMasters {
  readonly #scheduler: Scheduler;
  /** The addresses of masters that have not replied yet. */
  readonly #pinged = new Set<string>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** Called when a request has had no reply within its time limit. */
  suspect(masters: readonly Master[], timeLimitMs: number): void {
    for (const master of masters)
      if (master.isConnected && !this.#pinged.has(master.address)) this.#ping(master, timeLimitMs);
  }

  #ping(master: Master, timeLimitMs: number): void {
    const { address } = master;
    let { arrived } = master;
    let silentMs = Math.min(timeLimitMs, LONGEST_SILENCE_MS - LOOK_MS);
    let limit: TimeLimit | undefined;
    const settle = (): void => {
      limit?.cancel();
      this.#pinged.delete(address);
    };
    const listen = (): void => {
      const listenMs = Math.min(LOOK_MS, LONGEST_SILENCE_MS - silentMs);
      limit = new TimeLimit(this.#scheduler, listenMs);
      limit.onOver = () => {
        // Replies to earlier requests arrive before the reply to the ping.
        silentMs = master.arrived === arrived ? silentMs + listenMs : 0;
        ({ arrived } = master);
        if (silentMs < LONGEST_SILENCE_MS) listen();
        else {
          settle();
          master.disconnect();
        }
      };
    };
    this.#pinged.add(address);
    master.command('ping').then(settle, settle);
    listen();
  }
}
