import { afterEach, describe, expect, it } from '@jest/globals';
import { Program } from './program.js';

let sample: Program;

afterEach(async () => {
  sample.signal('SIGTERM'); // SIGKILL would leave its instances and its Redis server behind
  await sample.ended;
});

describe('npm run sample:cron', () => {
  it('writes one report for each fire time, whatever the clocks of the instances say', async () => {
    sample = new Program('sample/cron/src/main.ts', { CRON_RUNS: '2' });
    expect(await sample.ended).toEqual({ code: 0, signal: null });

    expect(sample.output).toContain('the end: 2 fire times, 2 reports');
    const fires = [
      ...sample.output.matchAll(/report:(\d{8}T\d{6}Z): written by (\d), skipped by (.*)/g),
    ].map(([, time, writer, skipped]) => ({ time, writer, skipped: skipped?.split(', ') ?? [] }));
    expect(new Set(fires.map(({ time }) => time)).size).toBe(2);
    for (const { writer, skipped } of fires) {
      expect(skipped.length).toBeGreaterThan(0); // a busy machine may miss a fire time
      expect(skipped).not.toContain(writer);
    }
  }, 60_000);

  it('takes its instances and its Redis server with it on Ctrl-C', async () => {
    sample = new Program('sample/cron/src/main.ts', {});
    await sample.says(/3 instances/);
    sample.signal('SIGINT');
    // They write their errors where the sample does, so its output ends when the last of them has ended.
    expect(await sample.ended).toEqual({ code: 130, signal: null });
  }, 60_000);
});
