import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startProgram } from '../../../scripts/processes.mjs';

const WORKER = fileURLToPath(import.meta.resolve('./worker.js'));

/** The last job of the queue would be killed in every attempt, for it is the only one that there is. */
const KILLS_PER_JOB = 2;

/** What a worker says while it is at a job. */
export type Stage = 'begun' | 'paid';

/** The workers, each a process of its own. One that is killed is replaced. */
export class Crew {
  #finish!: () => void;
  #fail!: (error: Error) => void;
  /** Resolves when all have gone home because there is nothing more to do; rejects when one fails. */
  readonly finished = new Promise<void>((resolve, reject) => {
    this.#finish = resolve;
    this.#fail = reject;
  });
  readonly #redisUrl: string;
  readonly #onKill: (worker: string) => void;
  #size = 0;
  #killed = 0;
  #killAt: Stage | undefined;

  /** @param onKill is told who, and at what: `worker 2 (begun 7 1)` */
  constructor(redisUrl: string, onKill: (worker: string) => void) {
    this.#redisUrl = redisUrl;
    this.#onKill = onKill;
  }

  get killed(): number {
    return this.#killed;
  }

  hire(name: string): void {
    this.#size += 1;
    const worker = startProgram(WORKER, { REDIS_URL: this.#redisUrl });
    createInterface({ input: worker.stdout }).on('line', (line) => {
      const [stage, , attempt] = line.split(' ');
      if (stage !== this.#killAt || Number(attempt) > KILLS_PER_JOB) return;
      this.#killAt = undefined;
      worker.kill('SIGKILL');
      this.#onKill(`${name} (${line})`);
    });
    worker.once('exit', (code, signal) => {
      this.#size -= 1;
      if (signal === 'SIGKILL') {
        this.#killed += 1;
        this.hire(name);
      } else if (code !== 0) {
        this.#fail(new Error(`${name} ended with ${String(code ?? signal)}.`));
      } else if (this.#size === 0) {
        this.#finish();
      }
    });
  }

  /** Kills the next worker that says so: SIGKILL, in the middle of its job. */
  killNextAt(stage: Stage): void {
    this.#killAt = stage;
  }
}
