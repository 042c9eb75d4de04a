import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Recorder } from '../faults/history.js';
import { BEAT_MS } from './liveness.js';

/**
 * Pings a server on the way that the clients take, and writes that down: on a machine that is too busy for that, nobody can be served
 * in time, whatever the library does.
 */
export class Pulse {
  readonly #client: Redis;
  readonly #stopped: Promise<void>;
  #isOver = false;

  constructor(port: number, recorder: Recorder) {
    this.#client = new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: 0 });
    this.#client.on('error', () => undefined); // a fault of the plan
    this.#stopped = this.#beat(`server ${port}`, recorder);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#stopped;
    this.#client.disconnect();
  }

  async #beat(client: string, recorder: Recorder): Promise<void> {
    while (!this.#isOver) {
      await this.#client.ping().catch(() => undefined);
      recorder.record({ type: 'beat', client });
      await sleep(BEAT_MS);
    }
  }
}
