import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';

/**
 * The effect of a job, once. It stands for what a database does in one transaction: a row with a unique key, and the sum that it adds to.
 * Whoever comes second, in whatever attempt, changes nothing but a count of those who came second.
 */
const PAY = `
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 1 then
  redis.call('INCR', KEYS[2])
  return 1
end
redis.call('INCR', KEYS[3])
return 0`;

/** What the books say in the end. */
export interface Books {
  /** Of each job, how many attempts have been begun. */
  readonly attempts: ReadonlyMap<string, number>;
  /** Of each job that has had its effect, the attempt that had it. */
  readonly effects: ReadonlyMap<string, number>;
  /** How many effects were added up: as many as there are jobs, if all went well. */
  readonly total: number;
  /** How many effects were refused because the job has had its own. */
  readonly refused: number;
}

/** The queue of jobs and the books, which all workers share. */
@Injectable()
export class Database implements OnApplicationShutdown {
  readonly #redis: Redis;

  constructor(url: string) {
    this.#redis = new Redis(url);
  }

  async addJobs(ids: readonly string[]): Promise<void> {
    await this.#redis.rpush('jobs', ...ids);
  }

  /** The job at the head, which goes to the end of the queue: it stays in there until it is done, whoever dies. */
  async nextJob(): Promise<string | null> {
    return this.#redis.lmove('jobs', 'jobs', 'LEFT', 'RIGHT');
  }

  async removeJob(id: string): Promise<void> {
    await this.#redis.lrem('jobs', 0, id);
  }

  async noteAttempt(id: string, attempt: number): Promise<void> {
    await this.#redis.hset('attempts', id, attempt);
  }

  /** @returns whether this was the one that had the effect */
  async pay(id: string, attempt: number): Promise<boolean> {
    const made = await this.#redis.eval(PAY, 3, 'effects', 'total', 'refused', id, attempt);
    return made === 1;
  }

  async books(): Promise<Books> {
    const [attempts, effects, total, refused] = await Promise.all([
      this.#redis.hgetall('attempts'),
      this.#redis.hgetall('effects'),
      this.#redis.get('total'),
      this.#redis.get('refused'),
    ]);
    return {
      attempts: toNumbers(attempts),
      effects: toNumbers(effects),
      total: Number(total),
      refused: Number(refused),
    };
  }

  onApplicationShutdown(): void {
    this.#redis.disconnect();
  }
}

const toNumbers = (hash: Readonly<Record<string, string>>): ReadonlyMap<string, number> =>
  new Map(Object.entries(hash).map(([id, value]) => [id, Number(value)]));
