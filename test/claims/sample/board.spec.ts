import { afterEach, describe, expect, it } from '@jest/globals';
import type { HolderInfo } from 'nestjs-holdfast/admin';
import { EventClient, fromPage } from '../../board/board-app.js';
import { freePort } from '../../support/free-port.js';
import { Program } from './program.js';

let sample: Program;
const client = new EventClient();

afterEach(async () => {
  client.close();
  sample.signal('SIGTERM'); // SIGKILL would leave its processes and its Redis server behind
  await sample.ended;
});

describe('npm run sample:board', () => {
  it('names its page first, freezes a process that holds a key, tells it that an operator freed it, and ends with Ctrl-C', async () => {
    sample = new Program('sample/board/src/main.ts', {
      PORT: String(await freePort()),
      FREEZE_MS: '20000',
    });
    await sample.says(/is frozen, and holds stock:count/);
    const [first = ''] = sample.output.split('\n');
    const [url = ''] = /http:\/\/127\.0\.0\.1:\d+\/locks$/.exec(first) ?? [];
    expect(await (await fetch(url)).text()).toContain('<title>Locks</title>');

    expect(await client.open(`${url}/api/stream?key=stock:count`)).toBe(200);
    let holders: readonly HolderInfo[] = [];
    for (;;) {
      const { lock } = await client.next('key');
      ({ holders } = lock ?? { holders });
      if (holders[0]?.isUnresponsive && lock?.line.length === 2) break; // both of the others wait
    }
    const response = await fetch(`${url}/api/release`, {
      method: 'POST',
      headers: fromPage(url),
      body: JSON.stringify({ key: 'stock:count', holders, reason: 'frozen' }),
    });
    expect(await response.json()).toEqual({ status: 'done', keys: ['stock:count'] });
    const seen = sample.output.length;
    await sample.says(new RegExp(`^[^]{${seen}}[^]*counts the stock`));
    await sample.says(/was told: Lock "stock:count" was lost/);

    sample.signal('SIGINT');
    // Its processes write their errors where the sample does, so its output ends when the last of them has ended.
    expect(await sample.ended).toEqual({ code: 130, signal: null });
  }, 120_000);
});
