import { afterEach, describe, expect, it } from '@jest/globals';
import { Program } from './program.js';

const JOBS = 15;

let sample: Program;

afterEach(async () => {
  sample.signal('SIGTERM'); // SIGKILL would leave its workers and its Redis server behind
  await sample.ended;
});

function startSample(env: Record<string, string> = {}): Program {
  sample = new Program('sample/worker/src/main.ts', {
    WORKER_JOBS: String(JOBS),
    WORKER_KILL_EVERY_MS: '500',
    ...env,
  });
  return sample;
}

const lines = (pattern: RegExp): readonly RegExpExecArray[] => [...sample.output.matchAll(pattern)];

describe('npm run sample:worker', () => {
  it('has every job done once, although workers are killed before and after the effect', async () => {
    expect(await startSample().ended).toEqual({ code: 0, signal: null });

    const [, killed] = /(\d+) workers killed/.exec(sample.output) ?? [];
    const kills = lines(/KILLED worker \d \((begun|paid) \d+ \d/g);
    expect(new Set(kills.map(([, stage]) => stage))).toEqual(new Set(['begun', 'paid']));
    expect(Number(killed)).toBe(kills.length);

    const [, effects, lost] =
      new RegExp(`the end: ${JOBS} jobs, (\\d+) effects, (\\d+) attempts lost`).exec(
        sample.output,
      ) ?? [];
    expect(Number(effects)).toBe(JOBS);
    expect(Number(lost)).toBeGreaterThan(0);
    // A job that took several attempts has had the effect of one of them.
    const retried = lines(/job \d+: (\d+) attempts, the effect is of attempt (\d+)/g);
    expect(retried.reduce((sum, [, attempts]) => sum + Number(attempts) - 1, 0)).toBe(Number(lost));
    for (const [, attempts, effect] of retried) {
      expect(Number(effect)).toBeGreaterThan(0);
      expect(Number(effect)).toBeLessThanOrEqual(Number(attempts));
    }
  }, 90_000);

  it('takes its workers and its Redis server with it on Ctrl-C', async () => {
    await startSample().says(/KILLED worker/);
    sample.signal('SIGINT');
    // They write their errors where the sample does, so its output ends when the last of them has ended.
    expect(await sample.ended).toEqual({ code: 130, signal: null });
  }, 60_000);

  it('refuses a number of jobs that is none', async () => {
    expect(await startSample({ WORKER_JOBS: 'many' }).ended).toEqual({ code: 1, signal: null });
    expect(sample.output).toContain('WORKER_JOBS is a whole number from 1.');
  });
});
