/**
 * `npm run sample:cron`: three instances of an application with a cron job, which fires in all of them every two seconds (the "minute"
 * of this sample). Of each fire time there is one report, although the clocks of the instances differ by more than a report takes.
 *
 * The job is in report.job.ts, the application in instance.ts; the rest starts, listens and counts.
 *
 * CRON_RUNS is how many fire times are watched.
 */
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { runToTheEnd, startProgram, startRedis } from '../../../scripts/processes.mjs';

const INSTANCE = fileURLToPath(import.meta.resolve('./instance.js'));
const RUNS = Number(process.env.CRON_RUNS ?? 5);
const BEHIND_MS = [0, 100, 200];

/** What the instances did at a fire time: their numbers. */
interface Fire {
  readonly wrote: number[];
  readonly skipped: number[];
}

const say = (text: string): void => {
  console.log(`cron: ${text}`);
};

async function main(): Promise<void> {
  if (!Number.isInteger(RUNS) || RUNS < 1) throw new Error('CRON_RUNS is a whole number from 1.');
  const redisUrl = await startRedis(say);
  say(`${BEHIND_MS.length} instances, whose clocks are ${BEHIND_MS.join(', ')} ms behind`);
  const fires = [...(await watch(redisUrl))].slice(0, RUNS);
  for (const [key, { wrote, skipped }] of fires)
    say(`${key}: written by ${wrote.join(', ') || 'NOBODY'}, skipped by ${skipped.join(', ')}`);
  const reports = fires.reduce((sum, [, { wrote }]) => sum + wrote.length, 0);
  say(`the end: ${fires.length} fire times, ${reports} reports`);
  if (!fires.every(([, { wrote }]) => wrote.length === 1)) process.exitCode = 1;
}

/**
 * By key, in the order of their times. Resolves when one more has begun than is asked for: what there is to hear of the others has been
 * heard by then.
 */
function watch(redisUrl: string): Promise<ReadonlyMap<string, Fire>> {
  const fires = new Map<string, Fire>();
  const ready = new Set<number>();
  let tooEarly: string | undefined;
  return new Promise((resolve, reject) => {
    const hear = (instance: number, line: string): void => {
      const [what, key = ''] = line.split(' ');
      if (what === 'ready') ready.add(instance);
      if (what !== 'wrote' && what !== 'skipped') return;
      // Not all fired at a time that was over before the last of them was ready.
      if (ready.size < BEHIND_MS.length) tooEarly = key;
      if (key === tooEarly) return;
      const fire = fires.get(key) ?? { wrote: [], skipped: [] };
      fires.set(key, fire);
      fire[what].push(instance);
      if (fires.size > RUNS) resolve(fires);
    };
    for (const [index, behindMs] of BEHIND_MS.entries()) {
      const program = startProgram(INSTANCE, { REDIS_URL: redisUrl, BEHIND_MS: String(behindMs) });
      createInterface({ input: program.stdout }).on('line', (line) => hear(index + 1, line));
      program.once('exit', () => reject(new Error(`Instance ${index + 1} has ended.`)));
    }
  });
}

await runToTheEnd('cron', main);
