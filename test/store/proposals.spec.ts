import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { take } from '../../lib/store/redis/scripts/plain.js';
import { raiseFenceScript } from '../../lib/store/redis/scripts/raise-fence.js';
import { request } from './open-store.js';
import { VirtualQuorum } from './virtual-quorum.js';

const TRIP_MS = 10;

/** Further than a proposal is ahead of the clocks that were known. */
const STEP_US = 50_000;

let quorum: VirtualQuorum;

/** What the clocks of the servers show, the third a little later. */
const clockUs = (node: number): number =>
  Math.round(quorum.runtime.now().wallMs * 1_000) + STEP_US + node;

beforeEach(async () => {
  quorum = new VirtualQuorum();
  await quorum.open();
  quorum.nodes.forEach((node, index) => {
    node.delayMs = TRIP_MS;
    node.answerTo(raiseFenceScript.sha, () => 1);
    node.answerTo(take.sha, () => clockUs(index));
  });
});

afterEach(async () => {
  await quorum.close();
});

/** How many fences had to be raised for a lock, because the servers granted it with different tokens. */
async function raisedFor(key: string): Promise<number> {
  for (const { received } of quorum.nodes) received.length = 0;
  const outcome = await quorum.during(quorum.store.acquire(request(key)), 5 * TRIP_MS);
  expect(outcome).toMatchObject({ status: 'granted' });
  return quorum.countsOf(raiseFenceScript).reduce((sum, count) => sum + count);
}

it('proposals follow the clocks that plain grants report: all servers accept them again', async () => {
  expect(await raisedFor('first')).toBeGreaterThan(0);
  expect(await raisedFor('second')).toBe(0);
  expect(await raisedFor('third')).toBe(0);
});

it('a lock whose fencing token no majority takes is not granted, and the outcome says why', async () => {
  quorum.nodes[0]!.answerTo(raiseFenceScript.sha, () => new Error('OOM command not allowed'));
  const outcome = await quorum.during(quorum.store.acquire(request('key')), 5 * TRIP_MS);
  expect(outcome).toMatchObject({
    status: 'unavailable',
    nodes: [{ node: 'a:6379', kind: 'error', message: expect.stringContaining('OOM') }],
  });
});
