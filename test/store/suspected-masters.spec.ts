import { describe, expect, it } from '@jest/globals';
import type { Master } from '../../lib/store/redis/client/redis-client.js';
import { SilentMasters } from '../../lib/store/redis/client/silent-masters.js';
import { Scheduler } from '../../lib/time/scheduler.js';
import { deferred } from '../support/eventually.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';

/** A master of a Cluster that replies when the test says so. */
class FakeMaster implements Master {
  isConnected = true;
  arrived = 0;
  isEnded = false;
  readonly asked: (string | number)[] = [];
  readonly pong = deferred<string>();

  constructor(readonly address = 'a:7000') {}

  async command(name: string | number): Promise<unknown> {
    this.asked.push(name);
    return this.pong.promise;
  }

  disconnect(): void {
    this.isEnded = true;
  }
}

function suspecting() {
  const runtime = new VirtualRuntime();
  return { runtime, silent: new SilentMasters(new Scheduler(runtime)) };
}

describe('a master that owes a reply', () => {
  it.each([
    [1_000, 4_000],
    [250, 4_750],
    [4_500, 500],
    [60_000, 500],
  ])('for %d ms is disconnected after %d ms more without one', async (timeLimitMs, leftMs) => {
    const { runtime, silent } = suspecting();
    const master = new FakeMaster();
    silent.suspect([master], timeLimitMs);
    expect(master.asked).toEqual(['ping']);
    await runtime.advance(leftMs - 50);
    expect(master.isEnded).toBe(false);
    await runtime.advance(200);
    expect(master.isEnded).toBe(true);
  });

  it('is given as long again when anything arrives', async () => {
    const { runtime, silent } = suspecting();
    const master = new FakeMaster();
    silent.suspect([master], 1_000);
    await runtime.advance(3_900);
    master.arrived += 1;
    await runtime.advance(4_900);
    expect(master.isEnded).toBe(false);
    await runtime.advance(900);
    expect(master.isEnded).toBe(true);
  });

  it.each(['reply', 'error'])('is left alone after the %s to the ping', async (end) => {
    const { runtime, silent } = suspecting();
    const master = new FakeMaster();
    silent.suspect([master], 1_000);
    if (end === 'reply') master.pong.resolve('PONG');
    else master.pong.reject(new Error('NOPERM'));
    await settled();
    silent.suspect([master], 1_000);
    expect(master.asked).toEqual(['ping', 'ping']);
    await runtime.advance(10_000);
    expect(master.isEnded).toBe(false);
  });

  it('is pinged once until it replies, and each master for itself', () => {
    const { silent } = suspecting();
    const masters = [new FakeMaster('a:7000'), new FakeMaster('b:7001')];
    for (let times = 0; times < 3; times += 1) silent.suspect(masters, 1_000);
    expect(masters.map(({ asked }) => asked)).toEqual([['ping'], ['ping']]);
  });

  it('is suspected anew over its next connection', async () => {
    const { runtime, silent } = suspecting();
    const [first, second] = [new FakeMaster(), new FakeMaster()];
    silent.suspect([first], 1_000);
    await runtime.advance(4_200);
    expect(first.isEnded).toBe(true);
    silent.suspect([second], 1_000);
    expect(second.asked).toEqual(['ping']);
  });

  it('is not pinged where no connection leads to it', () => {
    const { silent } = suspecting();
    const master = Object.assign(new FakeMaster(), { isConnected: false });
    silent.suspect([master], 1_000);
    expect(master.asked).toEqual([]);
  });
});
