import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockEngine } from '../../lib/engine/lock-engine.js';
import { ChildScript } from '../support/child-script.js';
import { eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';

const PROCESS = new URL('leader-process.ts', import.meta.url);
const TTL_MS = 2_500;
/** What is promised beyond the TTL. */
const SOON_MS = 150;
/** What a busy machine may add: the successor has to be given the processor, and to write what it sees. */
const BUSY_MS = 2_000;

interface Noted {
  readonly name: string;
  readonly what: string;
  readonly term: number;
  readonly atMs: number;
  readonly pid: number;
}

let server: RedisServer;
const children: ChildScript[] = [];
const frozen: number[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
});
beforeEach(async () => {
  await server.command('FLUSHDB');
});
afterEach(async () => {
  for (const pid of frozen.splice(0)) process.kill(pid, 'SIGCONT');
  await Promise.all(children.splice(0).map((child) => child.kill()));
});
afterAll(() => server.stop());

const noted = async (): Promise<readonly Noted[]> =>
  ((await server.command('LRANGE', 'events', 0, -1)) as string[]).map(
    (text) => JSON.parse(text) as Noted,
  );

const ofKind = async (what: string, count: number): Promise<readonly Noted[]> =>
  eventually(
    async () => {
      const found = (await noted()).filter((each) => each.what === what);
      return found.length >= count && found;
    },
    { withinMs: 30_000 },
  );

async function twoInstances(): Promise<{ leader: Noted; childOf: (pid: number) => ChildScript }> {
  for (const name of ['a', 'b'])
    children.push(new ChildScript(PROCESS, [server.url, name, String(TTL_MS)]));
  await ofKind('stands', 2);
  const [leader] = await ofKind('elected', 1);
  await eventually(async () => (await server.command('ZCARD', '{lock:reports}:queue')) === 1);
  if (leader === undefined) throw new Error('somebody leads');
  return {
    leader,
    childOf: (pid) => {
      const child = children.find((each) => each.pid === pid);
      if (child === undefined) throw new Error('it is one of the two');
      return child;
    },
  };
}

const nowMs = async (): Promise<number> => {
  const [seconds = 0, micros = 0] = ((await server.command('TIME')) as string[]).map(Number);
  return seconds * 1_000 + micros / 1_000;
};

describe('leaders in processes of their own', () => {
  it('are succeeded within the TTL and a little when they die', async () => {
    const { leader, childOf } = await twoInstances();
    await childOf(leader.pid).kill();
    const diedAtMs = await nowMs();
    const [, next] = await ofKind('elected', 2);
    expect(next?.name).not.toBe(leader.name);
    expect(next?.term).toBeGreaterThan(leader.term);
    const tookMs = (next?.atMs ?? Infinity) - diedAtMs;
    expect(tookMs).toBeLessThan(TTL_MS + SOON_MS + BUSY_MS);
  }, 60_000);

  it('are succeeded when they freeze, and know it when they go on', async () => {
    const { leader, childOf } = await twoInstances();
    frozen.push(childOf(leader.pid).pid);
    process.kill(leader.pid, 'SIGSTOP');
    const [, next] = await ofKind('elected', 2);
    expect(next?.term).toBeGreaterThan(leader.term);
    for (const pid of frozen.splice(0)) process.kill(pid, 'SIGCONT');
    const [lost] = await ofKind('lost', 1);
    expect(lost).toMatchObject({ name: leader.name, term: leader.term });
    // The successor still leads.
    expect((await noted()).filter(({ what }) => what === 'elected')).toHaveLength(2);
  }, 60_000);
});

describe('leaders over three masters', () => {
  it('are succeeded in a later term, also while one master is away', async () => {
    const servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
    const services: LockEngine[] = [];
    try {
      for (let each = 0; each < 2; each += 1) {
        const redis = servers.map(({ url }) => url);
        const locks = new Locks({ redis, ttl: 3_000 });
        services.push(locks);
        await locks.open();
      }
      const terms: { who: number; term: number }[] = [];
      const [first, second] = services.map((locks, who) =>
        locks.lead('reports', { onElected: ({ term }) => void terms.push({ who, term }) }),
      );
      await eventually(() => terms.length === 1, { withinMs: 20_000 });
      await servers[2]?.stop();
      await (first?.isLeader === true ? first : second)?.stop();
      await eventually(() => terms.length === 2, { withinMs: 20_000 });
      expect(terms[1]?.who).not.toBe(terms[0]?.who);
      expect(terms[1]?.term).toBeGreaterThan(terms[0]?.term ?? Infinity);
    } finally {
      await Promise.all(services.map((service) => service.shutdown(0)));
      await Promise.all(servers.slice(0, 2).map((one) => one.stop()));
    }
  }, 90_000);
});
