/**
 * `npm run sample:worker`: three workers and one queue of jobs. Every second one of the workers is killed in the middle of a job, and
 * replaced. In the end every job has had its effect, once.
 *
 * How a job is done is in payouts.service.ts, how a worker takes jobs in worker.ts; the rest starts, kills and counts.
 *
 * Why the count is exact, although processes die between any two steps:
 *
 * - A job stays in the queue until it is done, so no death loses one (`nextJob` in database.ts).
 * - `@RunOnce` has one worker at a job at a time, and the next one at it after a death. That makes it work done AT LEAST once: a worker
 *   that is killed after it has paid, and before it could say so, is followed by one that pays again.
 * - So paying is what refuses the second: a row that is unique for the job, written in one step with the payment (`PAY` in database.ts).
 *   No lock can do this for you. The lock keeps the refusals rare, and the work from being done by all of them at once.
 *
 * WORKER_JOBS is how many jobs there are, WORKER_KILL_EVERY_MS how long it is between two kills.
 */
import { runToTheEnd, startRedis } from '../../../scripts/processes.mjs';
import { Crew, type Stage } from './crew.js';
import { Database, type Books } from './database.js';

const WORKERS = 3;
const JOBS = Number(process.env.WORKER_JOBS ?? 60);
const KILL_EVERY_MS = Number(process.env.WORKER_KILL_EVERY_MS ?? 1_000);

const say = (text: string): void => {
  console.log(`worker: ${text}`);
};

async function main(): Promise<void> {
  if (!Number.isInteger(JOBS) || JOBS < 1) throw new Error('WORKER_JOBS is a whole number from 1.');
  const redisUrl = await startRedis(say);
  const database = new Database(redisUrl);
  try {
    const jobs = Array.from({ length: JOBS }, (_, index) => String(index + 1));
    await database.addJobs(jobs);
    say(`${JOBS} jobs, ${WORKERS} workers`);
    const killed = await doAll(redisUrl);
    report(jobs, await database.books(), killed);
  } finally {
    database.onApplicationShutdown();
  }
}

/** Resolves when the queue is empty, with how many workers were killed meanwhile. */
async function doAll(redisUrl: string): Promise<number> {
  const crew = new Crew(redisUrl, (worker) => say(`KILLED ${worker}`));
  for (let number = 1; number <= WORKERS; number += 1) crew.hire(`worker ${number}`);
  const stages: readonly Stage[] = ['begun', 'paid']; // in turn: before the effect, and after it
  const killing = setInterval(() => {
    crew.killNextAt(stages[crew.killed % stages.length]!);
  }, KILL_EVERY_MS);
  try {
    await crew.finished;
  } finally {
    clearInterval(killing);
  }
  return crew.killed;
}

/** The table, and whether it is as it should be. */
function report(jobs: readonly string[], books: Books, killed: number): void {
  const { attempts, effects, total, refused } = books;
  const begun = [...attempts.values()].reduce((sum, count) => sum + count, 0);
  const lost = begun - jobs.length;
  for (const id of jobs.filter((job) => (attempts.get(job) ?? 0) !== 1)) {
    const effect = effects.has(id) ? `the effect is of attempt ${effects.get(id)!}` : 'NO EFFECT';
    say(`job ${id}: ${attempts.get(id) ?? 0} attempts, ${effect}`);
  }
  say(`${killed} workers killed, ${refused} effects refused because the job has had its own`);
  say(`the end: ${jobs.length} jobs, ${total} effects, ${lost} attempts lost to kills`);
  const once = jobs.every((id) => effects.has(id)) && total === jobs.length;
  if (!once) process.exitCode = 1;
}

await runToTheEnd('worker', main);
