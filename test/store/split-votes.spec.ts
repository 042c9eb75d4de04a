import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { take } from '../../lib/store/redis/scripts/plain.js';
import { LOST } from '../support/fake-redis.js';
import { request } from './open-store.js';
import { NODE_TIMEOUT_MS, VirtualQuorum } from './virtual-quorum.js';

/** As the acquire script refuses. */
const HELD = [0, 1, 30_000, 'holdfast:other', ''];

/** As a plain request is granted, by clocks that agree. */
const GRANTED = 77;

const TRIP_MS = 10;

let quorum: VirtualQuorum;

beforeEach(async () => {
  quorum = new VirtualQuorum();
  await quorum.open();
  for (const node of quorum.nodes) {
    node.delayMs = TRIP_MS;
    node.answerTo(take.sha, () => GRANTED);
  }
});

afterEach(async () => {
  await quorum.close();
});

const afterASplit = () => ({ ...request('key'), splits: 1 });

describe('after a split vote', () => {
  it('one server is asked first, and the others when it has granted the key', async () => {
    const asking = quorum.store.acquire(afterASplit());
    await quorum.during(asking, TRIP_MS - 1);
    expect(quorum.countsOf(take)).toEqual([1, 0, 0]);
    expect(await quorum.during(asking, 4 * TRIP_MS)).toMatchObject({ status: 'granted' });
    expect(quorum.countsOf(take)).toEqual([1, 1, 1]);
  });

  it('the others are not asked when the first has refused', async () => {
    quorum.nodes[0]!.answerTo(take.sha, () => 0);
    quorum.nodes[0]!.answerTo(acquireScript.sha, () => HELD);
    expect(await quorum.during(quorum.store.acquire(afterASplit()), 3 * TRIP_MS)).toMatchObject({
      status: 'held',
    });
    expect(quorum.countsOf(take)).toEqual([1, 0, 0]);
    expect(quorum.countsOf(acquireScript)).toEqual([1, 0, 0]);
  });

  it('a server that is not connected is not the first', async () => {
    quorum.nodes[0]!.isUp = false;
    quorum.nodes[0]!.cut();
    const asking = quorum.store.acquire(afterASplit());
    await quorum.during(asking, TRIP_MS - 1);
    expect(quorum.countsOf(take)).toEqual([0, 1, 0]);
    expect(await quorum.during(asking, 4 * TRIP_MS)).toMatchObject({ status: 'granted' });
  });

  it('a server that owes an answer is not the first', async () => {
    const silent = quorum.nodes[0]!;
    const known = silent.answer;
    silent.answerTo(take.sha, () => LOST);
    await quorum.during(quorum.store.acquire(request('other')), NODE_TIMEOUT_MS + 50);
    silent.answer = known;
    for (const node of quorum.nodes) node.received.length = 0;
    await quorum.during(quorum.store.acquire(afterASplit()), TRIP_MS - 1);
    expect(quorum.countsOf(take)).toEqual([0, 1, 0]);
  });
});

it('without a split vote all servers are asked at once', async () => {
  await quorum.during(quorum.store.acquire(request('key')), TRIP_MS - 1);
  expect(quorum.countsOf(take)).toEqual([1, 1, 1]);
});
