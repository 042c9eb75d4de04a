import { afterEach, describe, expect, it } from '@jest/globals';
import { Program } from './program.js';

let sample: Program;

afterEach(async () => {
  sample.signal('SIGTERM'); // SIGKILL would leave its Redis servers behind
  await sample.ended;
});

/** What is said of a part of the story: orders paid, orders ever paid twice, and how often each status was answered. */
function part(title: string): {
  readonly paid: number;
  readonly twice: number;
  readonly answers: Readonly<Record<string, number>>;
} {
  const [, line = ''] = sample.output.split(`redlock: ${title}: `);
  const [text = ''] = line.split('\n');
  const [, paid, twice] = /^(\d+) orders paid, (\d+) ever paid twice; answers: /.exec(text) ?? [];
  const answers = [...text.matchAll(/(\d+) × (\d+)/g)].map(
    ([, times, status]) => [status, Number(times)] as const,
  );
  return { paid: Number(paid), twice: Number(twice), answers: Object.fromEntries(answers) };
}

/** The lines that say how the masters are, by what happened before. */
const healths = (): readonly string[] =>
  [...sample.output.matchAll(/^redlock: health: (.*)$/gm)].map(([, line]) => line ?? '');

describe('npm run sample:redlock', () => {
  it('goes on with one of three masters dead, refuses with two dead, and pays no order twice', async () => {
    sample = new Program('sample/redlock/src/main.ts', {});
    expect(await sample.ended).toEqual({ code: 0, signal: null });

    for (const title of [
      'all three masters are there',
      'one of three is dead, locks go on',
      'healed',
      'all three are there again, so work goes on',
    ]) {
      const { paid, twice, answers } = part(title);
      expect({ title, twice, isAtWork: paid > 0 }).toEqual({ title, twice: 0, isAtWork: true });
      expect(answers['201']).toBeGreaterThan(0);
      expect(answers['409']).toBeGreaterThan(0);
    }
    const outage = part('two of three are dead, nothing runs unlocked');
    expect(outage).toEqual({ paid: 0, twice: 0, answers: { '503': expect.any(Number) } });

    const all = ['up', 'up', 'up'];
    expect(
      healths().map((line) => ({
        status: line.slice(0, 3),
        masters: [...line.matchAll(/ (up|DOWN)/g)].map(([, state]) => state),
      })),
    ).toEqual([
      { status: '200', masters: all },
      { status: '200', masters: ['DOWN', 'up', 'up'] },
      { status: '200', masters: all },
      { status: '503', masters: ['up', 'DOWN', 'DOWN'] },
      { status: '200', masters: all },
    ]);

    expect(sample.output).toMatch(
      /LockStoreUnavailableError \(503\): .*ECONNREFUSED.*; .*ECONNREFUSED/,
    );
    const [, orders, paid] =
      /the end: (\d+) orders, (\d+) paid, 0 paid twice/.exec(sample.output) ?? [];
    expect(Number(orders)).toBeGreaterThan(0);
    expect(paid).toBe(orders);
  }, 90_000);

  it('takes its Redis servers with it on Ctrl-C', async () => {
    sample = new Program('sample/redlock/src/main.ts', {});
    await sample.says(/3 customers at once/);
    sample.signal('SIGINT');
    // They write their errors where the sample does, so its output ends when the last of them has ended.
    expect(await sample.ended).toEqual({ code: 130, signal: null });
  }, 60_000);
});
