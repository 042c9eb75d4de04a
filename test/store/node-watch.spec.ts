import { describe, expect, it } from '@jest/globals';
import { NodeWatch, type Finding } from '../../lib/store/redis/node/node-watch.js';
import { Scheduler } from '../../lib/time/scheduler.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const AWAY: Finding = { kind: 'away', problem: 'is not usable yet: no answer' };
const LOOK_AGAIN_MS = 5_000;

/** A watch whose looks find one thing after the other, and then always the last of them. */
function watching(...findings: Finding[]) {
  const runtime = new VirtualRuntime();
  const warnings: string[] = [];
  let looks = 0;
  const watch = new NodeWatch({
    ...{ scheduler: new Scheduler(runtime), name: 'one:6379', situation: () => 'So it is.' },
    warn: (message) => warnings.push(message),
    look: () => {
      looks += 1;
      return Promise.resolve((findings.length > 1 ? findings.shift() : findings[0]) ?? 'grants');
    },
  });
  return { runtime, watch, warnings, looks: () => looks };
}

describe('the watch over a server that gives errors', () => {
  it('reports one that does not answer two looks in a row, although it is connected', async () => {
    const { runtime, watch, warnings } = watching(AWAY);
    watch.doubted('for good');
    await runtime.advance(0);
    expect(warnings).toEqual([]);
    await runtime.advance(LOOK_AGAIN_MS);
    expect(warnings).toEqual(['Redis at one:6379 is not usable yet: no answer. So it is.']);
    watch.close();
  });

  it('says what is found at the start when the other servers are known, too', () => {
    const { watch, warnings } = watching(AWAY);
    watch.starts();
    watch.found(AWAY, 'start');
    expect(warnings).toEqual([]);
    watch.started();
    expect(warnings).toEqual(['Redis at one:6379 is not usable yet: no answer. So it is.']);
    watch.close();
  });

  it('looks again at each later doubt, and takes nothing that was well before for away', async () => {
    const { runtime, watch, warnings, looks } = watching('grants', AWAY, 'grants');
    watch.doubted('for good');
    await runtime.advance(1_000);
    expect(looks()).toBe(1);
    watch.doubted('for good');
    await runtime.advance(1_000);
    expect(looks()).toBe(2);
    await runtime.advance(LOOK_AGAIN_MS);
    expect(looks()).toBe(3);
    expect(warnings).toEqual([]);
    watch.close();
  });
});
