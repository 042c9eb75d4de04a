import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { give, take } from '../../lib/store/redis/scripts/plain.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import { LOST, RETRY_MS } from '../support/fake-redis.js';
import { request } from './open-store.js';
import { NODE_TIMEOUT_MS, VirtualQuorum } from './virtual-quorum.js';

/** As the acquire script refuses. */
const HELD = [0, 1, 1, 30_000, 'holdfast:other', ''];

/** Of the arguments of the release script. */
const [TOKEN, LAST_TOKEN, WAKES] = [0, 2, 5];

let quorum: VirtualQuorum;

beforeEach(async () => {
  quorum = new VirtualQuorum();
  await quorum.open();
  for (const node of quorum.nodes.slice(0, 2)) {
    node.refusePlain();
    node.answerTo(acquireScript.sha, () => HELD);
    node.delayMs = 5; // the third has voted before
  }
});

afterEach(async () => {
  await quorum.close();
});

/** The clock of the third node, where it grants what is plain. */
const CLOCK_US = 77;

/** The third node's answer to the acquire, and then to every release until the test says otherwise. */
function third(acquire: unknown, release: unknown = 1): void {
  quorum.nodes[2]!.answerTo(take.sha, () => acquire);
  quorum.nodes[2]!.answerTo(releaseScript.sha, () => release);
}

const held = expect.objectContaining({ status: 'held', key: 'key' }) as unknown;

describe('votes that were not enough', () => {
  it('are given back, and those who refused are not asked', async () => {
    third(CLOCK_US);
    const lease = request('key');
    expect(await quorum.during(quorum.store.acquire(lease), 10)).toEqual(held);
    expect(quorum.countsOf(releaseScript)).toEqual([0, 0, 1]);
    const [call] = quorum.callsAt(2, releaseScript);
    // Nobody has to be woken: whom this vote refused asks again.
    expect([call?.[TOKEN], call?.[LAST_TOKEN], call?.[WAKES]]).toEqual([
      lease.token,
      CLOCK_US,
      'nobody',
    ]);
    await quorum.runtime.advance(60_000);
    expect(quorum.countsOf(releaseScript)).toEqual([0, 0, 1]);
  });

  it('are awaited before the caller hears that it was refused', async () => {
    third(CLOCK_US, LOST);
    const asking = quorum.store.acquire(request('key'));
    expect(await quorum.during(asking, NODE_TIMEOUT_MS - 10)).toBe('nothing yet');
    expect(await quorum.during(asking, 50)).toEqual(held);
  });

  it('that no answer confirms are given back again, until one does', async () => {
    third(CLOCK_US, LOST);
    await quorum.during(quorum.store.acquire(request('key')), NODE_TIMEOUT_MS + 50);
    third(CLOCK_US);
    await quorum.runtime.advance(10_000);
    const sent = quorum.callsAt(2, releaseScript).length;
    expect(sent).toBeGreaterThan(1);
    await quorum.runtime.advance(60_000);
    expect(quorum.callsAt(2, releaseScript)).toHaveLength(sent);
  });

  it('that come after the decision are removed', async () => {
    third(LOST);
    quorum.nodes[2]!.delayMs = 20;
    expect(await quorum.during(quorum.store.acquire(request('key')), 10)).toEqual(held);
    expect(quorum.countsOf(releaseScript)).toEqual([0, 0, 1]);
  });

  it('that were perhaps given before the answer was too late are removed', async () => {
    third(LOST);
    // Each of them is asked twice: what is held is not plain.
    for (const node of quorum.nodes.slice(0, 2)) node.delayMs = NODE_TIMEOUT_MS / 2 - 1;
    quorum.nodes[2]!.answerTo('evalsha', () => new Error('OOM command not allowed'));
    expect(await quorum.during(quorum.store.acquire(request('key')), NODE_TIMEOUT_MS)).toEqual(
      held,
    );
    await quorum.runtime.advance(10_000);
    expect(quorum.callsAt(2, releaseScript).length).toBeGreaterThan(0);
    expect(quorum.callsAt(0, releaseScript)).toEqual([]);
  });

  it('cannot be where nothing was sent', async () => {
    const node = quorum.nodes[2]!;
    node.isUp = false;
    node.cut();
    for (const other of quorum.nodes.slice(0, 2)) other.delayMs = RETRY_MS + 100;
    expect(await quorum.during(quorum.store.acquire(request('key')), 2 * (RETRY_MS + 105))).toEqual(
      held,
    );
    node.isUp = true;
    await quorum.runtime.advance(20_000);
    const ofKey = node.received.filter((command) => command.includes('lock:key'));
    expect(ofKey).toEqual([]);
  });
});

describe('a lock that is released while a server has not yet replied that it is not plain there', () => {
  const GRANTED = [1, CLOCK_US, CLOCK_US, 0];

  beforeEach(() => {
    for (const node of quorum.nodes) {
      node.answerTo(take.sha, () => CLOCK_US);
      node.answerTo(acquireScript.sha, () => GRANTED);
    }
    third(0, 0);
    quorum.nodes[2]!.delayMs = 50;
  });

  it('is not asked for there any more: the release has overtaken it', async () => {
    const lease = request('key');
    expect(await quorum.during(quorum.store.acquire(lease), 10)).toMatchObject({
      status: 'granted',
    });
    expect(await quorum.during(quorum.store.release(lease), 10)).toMatchObject({
      status: 'released',
    });
    await quorum.runtime.advance(NODE_TIMEOUT_MS);
    expect(quorum.countsOf(releaseScript)[2]).toBeGreaterThan(0);
    expect(quorum.countsOf(acquireScript)).toEqual([0, 0, 0]);
  });

  it('and was asked for there already, is released there behind that', async () => {
    const lease = request('key');
    await quorum.during(quorum.store.acquire(lease), 60);
    expect(quorum.countsOf(acquireScript)).toEqual([0, 0, 1]);
    await quorum.during(quorum.store.release(lease), 10);
    const scripts = quorum.nodes[2]!.received.map(([, script]) => script);
    expect(scripts.lastIndexOf(releaseScript.sha)).toBeGreaterThan(
      scripts.lastIndexOf(acquireScript.sha),
    );
  });

  it('is asked for again with the same token later', async () => {
    const lease = request('key');
    await quorum.during(quorum.store.acquire(lease), 10);
    await quorum.during(quorum.store.release(lease), 200);
    expect(await quorum.during(quorum.store.acquire(lease), 200)).toMatchObject({
      status: 'granted',
    });
    expect(quorum.countsOf(acquireScript)).toEqual([0, 0, 1]);
  });
});

describe('what is asked for twice, because it is not plain', () => {
  /** In which the plain answer comes. */
  const PLAIN_MS = 0.7 * NODE_TIMEOUT_MS;

  beforeEach(() => {
    for (const node of quorum.nodes) {
      node.delayMs = PLAIN_MS;
      node.answerTo(acquireScript.sha, () => LOST);
      node.answerTo(releaseScript.sha, () => LOST);
    }
  });

  /** Of both requests: the first is answered, and the second is not. */
  const BOTH_MS = PLAIN_MS + NODE_TIMEOUT_MS;

  it('has a time limit for each request: an acquire', async () => {
    for (const node of quorum.nodes) node.answerTo(take.sha, () => 0);
    const asking = quorum.store.acquire(request('key'));
    expect(await quorum.during(asking, BOTH_MS - 20)).toBe('nothing yet');
    expect(quorum.countsOf(acquireScript)).toEqual([1, 1, 1]);
    expect(await quorum.during(asking, 40)).toMatchObject({ status: 'unavailable' });
  });

  it('has a time limit for each request: a release', async () => {
    for (const node of quorum.nodes) node.answerTo(take.sha, () => CLOCK_US);
    const lease = request('key');
    await quorum.during(quorum.store.acquire(lease), PLAIN_MS);
    for (const node of quorum.nodes) node.answerTo(give.sha, () => 0);
    const releasing = quorum.store.release({ ...lease, isPlain: true });
    expect(await quorum.during(releasing, BOTH_MS - 20)).toBe('nothing yet');
    expect(quorum.countsOf(releaseScript)).toEqual([1, 1, 1]);
    expect(await quorum.during(releasing, 40)).toMatchObject({ status: 'unavailable' });
  });
});
