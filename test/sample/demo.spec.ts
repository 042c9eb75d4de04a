import { afterEach, describe, expect, it } from '@jest/globals';
import { Program } from './program.js';

const PAYMENTS = 60;
const ORDERS = 10;

let demo: Program;

afterEach(async () => {
  demo.signal('SIGTERM'); // SIGKILL would leave its child processes behind
  await demo.ended;
});

function startDemo(env: Record<string, string> = {}): Program {
  demo = new Program('scripts/demo.mjs', {
    DEMO_APP: 'sample/demo/src/main.js',
    DEMO_PAYMENTS: String(PAYMENTS),
    DEMO_PROCESSES: '2',
    ...env,
  });
  return demo;
}

/** The numbers of the table's row, one for each round. */
function row(label: string): number[] {
  const line = demo.output.split('\n').find((text) => text.startsWith(`${label} `)) ?? '';
  return line.slice(label.length).trim().split(/\s+/).map(Number);
}

describe('npm run demo', () => {
  it('shows double payments without locks, and none with', async () => {
    expect(await startDemo().ended).toEqual({ code: 0, signal: null });

    const [doublePayments, ...none] = row('double payments');
    expect(doublePayments).toBeGreaterThan(0);
    expect(none).toEqual([0, 0]);
    expect(row('201')).toEqual([ORDERS + doublePayments!, ORDERS, ORDERS]);

    const [, late, allLate] = row('409 ALREADY_PAID');
    const [, locked, noneLocked] = row('409 LOCK_NOT_ACQUIRED');
    expect(late! + locked!).toBe(PAYMENTS - ORDERS);
    expect([allLate, noneLocked]).toEqual([PAYMENTS - ORDERS, 0]);
    for (const label of ['p50, ms', 'p99, ms', 'all together, s']) {
      for (const value of row(label)) expect(value).toBeGreaterThan(0);
      expect(row(label)).toHaveLength(3);
    }
  }, 60_000);

  it('takes the Redis server and the shop with it on Ctrl-C', async () => {
    await startDemo().says(/starting 2 processes/);
    demo.signal('SIGINT');
    // They write their errors where the demo does, so its output ends when the last of them has ended.
    expect(await demo.ended).toEqual({ code: 130, signal: null });
  });

  it('refuses a number of payments that cannot show anything', async () => {
    expect(await startDemo({ DEMO_PAYMENTS: '3' }).ended).toEqual({ code: 1, signal: null });
    expect(demo.output).toContain('DEMO_PAYMENTS is a whole number, at least 20.');
  });
});
