import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { createTask, type ScheduledTask } from 'node-cron';
import { eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { HoldfastCoordinator } from './node-cron-coordinator.js';
import { Services } from './services.js';

const textOf = (file: string): string => readFileSync(new URL(file, import.meta.url), 'utf8');

let server: RedisServer;
let tasks: ScheduledTask[] = [];
const services = new Services();

beforeAll(async () => {
  server = await RedisServer.start();
});

afterEach(async () => {
  for (const task of tasks) await task.destroy();
  tasks = [];
  await services.closeAll();
});

afterAll(() => server.stop());

/** A process that has a task for each second: when it ran, and why it did not. */
async function processAt(
  url: string,
): Promise<{ readonly runs: string[]; readonly skips: string[] }> {
  const runCoordinator = new HoldfastCoordinator(await services.open(url));
  const [runs, skips]: [string[], string[]] = [[], []];
  const options = { name: 'tick', distributed: true, runCoordinator };
  const task = createTask('* * * * * *', ({ date }) => runs.push(date.toISOString()), options);
  task.on('execution:skipped', ({ reason }) => void skips.push(String(reason)));
  tasks.push(task);
  await task.start();
  return { runs, skips };
}

describe('the coordinator for node-cron', () => {
  it('is the code of docs/cron.md', () => {
    const [, code = ''] = textOf('node-cron-coordinator.ts').split(/(?<=nestjs-holdfast';)\n\n/);
    expect(textOf('../../../docs/cron.md')).toContain('```ts\n' + code + '```');
  });

  it('lets one of two processes run each second', async () => {
    const [one, two] = await Promise.all([processAt(server.url), processAt(server.url)]);
    await eventually(() => one.runs.length + two.runs.length >= 3, { withinMs: 10_000 });
    for (const task of tasks) await task.stop();
    const runs = [...one.runs, ...two.runs];
    expect(new Set(runs).size).toBe(runs.length);
    expect(new Set([...one.skips, ...two.skips])).toEqual(new Set(['not-elected']));
  });

  it('skips the run while Redis does not answer', async () => {
    const away = await RedisServer.start();
    const { runs, skips } = await processAt(away.url);
    await away.kill();
    runs.length = 0;
    await eventually(() => skips.includes('coordinator-error'), { withinMs: 10_000 });
    expect(runs).toEqual([]);
    await away.stop();
  });
});
