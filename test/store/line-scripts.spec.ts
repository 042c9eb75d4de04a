import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { newOwnerToken, type HoldMode } from '../../lib/store/owner-token.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import type { LineMode } from '../../lib/store/redis/scripts/script.js';
import { setLimitScript } from '../../lib/store/redis/scripts/set-limit.js';
import { transferScript } from '../../lib/store/redis/scripts/transfer.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { encoded } from '../support/encoded.js';
import { eventually } from '../support/eventually.js';
import { ScriptServer } from './script-server.js';

const namesOf = keyNames('lock:');
const [A, B] = [namesOf('a'), namesOf('b')];
const TTL_MS = 30_000;

let scripts: ScriptServer;
let redis: Redis;
/** A process that is alive: it is subscribed. */
let ear: Redis;
let heard: string[] = [];

beforeAll(async () => {
  scripts = await ScriptServer.start();
  ({ redis } = scripts);
  ear = redis.duplicate();
  await ear.subscribe('ear');
  ear.on('message', (_channel: string, message: string) => heard.push(message));
});

beforeEach(async () => {
  await redis.flushall();
  heard = [];
});

afterAll(async () => {
  ear.disconnect();
  await scripts.stop();
});

const token = (mode: HoldMode = 'exclusive'): string => newOwnerToken(systemRuntime, { mode });

const alive = (owner: string): string => `${owner} 1000 ear`;
const dead = (owner = token(), channel = 'nobody'): string => `${owner} 1000 ${channel}`;
/** As many dead processes as are notified of one change. */
const manyDead = (): string[] => ['x', 'y', 'z'].map((channel) => dead(token(), channel));

async function standAt({ queue }: typeof A, ...members: readonly string[]): Promise<void> {
  for (const [place, member] of members.entries()) await redis.zadd(queue, place, member);
}

const lineAt = ({ queue }: typeof A): Promise<string[]> => redis.zrange(queue, '0', '-1');
const holdersOf = ({ holders }: typeof A): Promise<string[]> => redis.zrange(holders, '0', '-1');

const acquire = (
  owner: string,
  {
    names = [A],
    ttlMs = TTL_MS,
    member = '',
    fenceKeepMs = 600_000,
    keeps = undefined as { ttlMs: number; limitMs: number; before: number } | undefined,
  } = {},
): Promise<unknown[]> =>
  scripts.run(
    acquireScript,
    encoded(acquireScript, {
      ...{ names, token: owner, ttlMs, member, fenceKeepMs, keeps, ticket: undefined, proposal: 0 },
    }),
  ) as Promise<unknown[]>;

const release = (
  owner: string,
  { lineMode, wakes }: { readonly lineMode?: LineMode; readonly wakes?: 'nobody' | undefined } = {},
): Promise<unknown> =>
  scripts.run(
    releaseScript,
    encoded(releaseScript, { names: [A], token: owner, lineMode, wakes, member: '' }),
  );

const extend = (
  owner: string,
  fencingToken: number,
  ttlMs: number,
  lineMode: LineMode = 'standalone',
): Promise<unknown> => {
  const renewal = { token: owner, ttlMs, fencingToken, sureUntilUs: 0, expectedFence: undefined };
  return scripts.run(
    extendScript,
    encoded(extendScript, { names: [A], renewals: [renewal], lineMode }),
  );
};

const transfer = (owner: string, to: string, lineMode: LineMode = 'standalone'): Promise<unknown> =>
  scripts.run(
    transferScript,
    encoded(transferScript, {
      ...{ names: [A], token: owner, to, ttlMs: TTL_MS, lastToken: 1, lineMode },
    }),
  );

const setLimit = (limit: number | undefined, lineMode: LineMode = 'standalone'): Promise<unknown> =>
  scripts.run(setLimitScript, encoded(setLimitScript, { names: [A], limit, lineMode }));

/** What was published before this has been heard. */
async function heardSoFar(): Promise<readonly string[]> {
  await redis.publish('ear', 'end');
  await eventually(() => heard.includes('end'));
  return heard.splice(0).filter((message) => message !== 'end');
}

describe('a reader', () => {
  it('that comes when a grant has emptied the line joins', async () => {
    const [first, second] = [token('shared'), token('shared')];
    await standAt(A, alive(first));
    expect(await acquire(second)).toMatchObject({ 0: 1, 3: 0 });
    expect((await holdersOf(A)).sort()).toEqual([first, second].sort());
  });

  it('that is refused at a later key keeps the first one with its phase, and leaves its line', async () => {
    const [other, mine] = [token('shared'), token('shared')];
    const [, , phase] = await acquire(other);
    await acquire(token(), { names: [B] });
    await standAt(A, alive(mine));
    const keeps = { ttlMs: 5_000, limitMs: 60_000, before: 0 };
    const refusal = await acquire(mine, { names: [A, B], member: alive(mine), keeps });
    expect(refusal).toMatchObject({ 0: 0, 2: 2, 7: 1 });
    expect((await holdersOf(A)).sort()).toEqual([other, mine].sort());
    expect(await redis.get(A.main)).toBe(`holdfast::shared ${String(phase)}`);
    expect([await lineAt(A), await lineAt(B)]).toEqual([[], [alive(mine)]]);
  });
});

describe('those in line whose processes are alive', () => {
  /** For how many ms from now the first message says. */
  async function toldMs(): Promise<number> {
    const [message = ''] = await heardSoFar();
    return Number(message.split(' ')[1]);
  }

  it('are notified when the release of one reader leaves others that end sooner; the fence stays', async () => {
    const [long, short] = [token('shared'), token('shared')];
    const [, , phase] = await acquire(long, { ttlMs: 60_000 });
    await acquire(short, { ttlMs: 30_000 });
    await standAt(A, ...manyDead(), alive(token()));
    await release(long);
    expect(Math.abs((await toldMs()) - 30_000)).toBeLessThan(10_000);
    expect(await redis.get(A.fence)).toBe(String(phase));
  });

  it('are notified when a renewal ends sooner than the reader did before', async () => {
    const reader = token('shared');
    const [, , phase = 0] = (await acquire(reader, { ttlMs: 60_000 })) as number[];
    await standAt(A, ...manyDead(), alive(token()));
    await extend(reader, phase, 30_000);
    expect(Math.abs((await toldMs()) - 30_000)).toBeLessThan(10_000);
  });

  it('are notified when the first holder of a limit ends sooner, although the last one does not', async () => {
    const [first, last] = [token('limit:2'), token('limit:2')];
    const [, , phase = 0] = (await acquire(first, { ttlMs: 60_000 })) as number[];
    await acquire(last, { ttlMs: 60_000 });
    await standAt(A, alive(token('limit:2')));
    await extend(first, phase, 30_000);
    expect(Math.abs((await toldMs()) - 30_000)).toBeLessThan(10_000);
  });
});

describe('a renewal', () => {
  it('stands although those in line could not be notified', async () => {
    const owner = token();
    const [, , fencingToken = 0] = (await acquire(owner)) as number[];
    await redis.set(A.holders, 'of other software');
    await standAt(A, alive(token()));
    expect(await extend(owner, fencingToken, 1_000)).toEqual([expect.any(Number), [1]]);
    expect(await redis.pttl(A.main)).toBeLessThanOrEqual(1_000);
  });
});

describe('a release over several masters', () => {
  it('tells those in line, unless the votes were not enough', async () => {
    const waiter = 'line 0 ear';
    for (const [wakes, messages] of [
      ['nobody', []],
      [undefined, ['line 0 lock:a']],
    ] as const) {
      const owner = token();
      await acquire(owner);
      await standAt(A, waiter);
      expect(await release(owner, { lineMode: 'quorum', wakes })).toBe(1);
      expect(await heardSoFar()).toEqual(messages);
      expect(await lineAt(A)).toEqual([waiter]);
      await redis.flushall();
    }
  });
});

describe('a renewal over several masters', () => {
  it.each([
    [TTL_MS, []],
    [1_000, ['line 0 lock:a']],
  ])('tells those in line if the lock ends sooner: after %d ms', async (ttlMs, messages) => {
    const owner = token();
    const [, , fencingToken = 0] = (await acquire(owner)) as number[];
    await standAt(A, ...manyDead(), 'line 0 ear');
    await extend(owner, fencingToken, ttlMs, 'quorum');
    expect(await heardSoFar()).toEqual(messages);
  });
});

describe('a limit that is set', () => {
  it('lets in the first in line whose process is alive, and is taken back', async () => {
    const [holder, next] = [token('limit:1'), token('limit:1')];
    await acquire(holder);
    await standAt(A, dead(token('limit:1')), alive(next));
    expect(await setLimit(2)).toBe(1);
    expect(await redis.get(A.limit)).toBe('2');
    expect((await holdersOf(A)).sort()).toEqual([holder, next].sort());
    expect(await lineAt(A)).toEqual([]);
    expect(await setLimit(undefined)).toBe(1);
    expect(await redis.exists(A.limit)).toBe(0);
    expect((await holdersOf(A)).sort()).toEqual([holder, next].sort());
  });

  it('can be removed when memory is full', async () => {
    await setLimit(2);
    await redis.config('SET', 'maxmemory', '1');
    try {
      await expect(setLimit(3)).rejects.toThrow('OOM');
      expect(await setLimit(undefined)).toBe(1);
    } finally {
      await redis.config('SET', 'maxmemory', '0');
    }
    expect(await redis.get(A.limit)).toBeNull();
  });
});

describe('a transfer', () => {
  it('of a lease that is gone grants the key to the first in line whose process is alive', async () => {
    const next = token();
    await standAt(A, dead(), alive(next));
    expect(await transfer(token(), token())).toMatchObject([0, expect.any(String)]);
    expect(await redis.get(A.main)).toBe(next);
    expect(await lineAt(A)).toEqual([]);
  });

  it('on a Cluster cannot tell which processes are alive, nor can a limit that is set', async () => {
    for (const act of [
      () => transfer(token('limit:1'), token('limit:1'), 'cluster'),
      () => setLimit(1, 'cluster'),
    ]) {
      const first = token('limit:1');
      await standAt(A, dead(first), alive(token('limit:1')));
      await act();
      expect(await holdersOf(A)).toEqual([first]);
      await redis.flushall();
    }
  });

  it('leaves the holder before nothing, and the other readers their phase', async () => {
    const [other, mine, to] = [token('shared'), token('shared'), token('shared')];
    const [, , phase] = await acquire(other);
    await acquire(mine);
    expect(await transfer(mine, to)).toEqual([1]);
    expect((await holdersOf(A)).sort()).toEqual([other, to].sort());
    expect(await redis.get(A.main)).toBe(`holdfast::shared ${String(phase)}`);
  });

  it.each<[HoldMode, HoldMode, number]>([
    ['shared', 'exclusive', -1],
    ['exclusive', 'exclusive', -1],
    ['exclusive', 'shared', -1],
    ['shared', 'shared', 0],
  ])('of a %s lease says whether somebody holds the key, %s: %d', async (mode, present, result) => {
    await acquire(token(present));
    expect(await transfer(token(mode), token(mode))).toMatchObject({ 0: result });
  });
});

describe('a line while Redis refuses writes', () => {
  const refusing = async (work: () => Promise<void>): Promise<void> => {
    await redis.config('SET', 'min-replicas-to-write', 1);
    try {
      await work();
    } finally {
      await redis.config('SET', 'min-replicas-to-write', 0);
    }
  };

  it('fails a request with the error of Redis, also behind more dead places than a script reads at once', async () => {
    await standAt(A, ...Array.from({ length: 1_000 }, () => dead()));
    await refusing(async () => {
      await expect(acquire(token())).rejects.toThrow('NOREPLICAS');
      await expect(release(token())).resolves.toBe(0);
    });
    expect(await acquire(token())).toMatchObject({ 0: 1 });
    expect(await lineAt(A)).toEqual([]);
  });

  it('does not say of a free key that another caller has it', async () => {
    await standAt(A, alive(token()));
    await refusing(() => expect(acquire(token())).rejects.toThrow('NOREPLICAS'));
    expect(await lineAt(A)).toHaveLength(1);
  });
});

describe('a line', () => {
  it('lasts longer than the lock, however short fencing tokens are kept', async () => {
    const mine = token();
    await acquire(token(), { ttlMs: 5_000 });
    await acquire(mine, { member: alive(mine), fenceKeepMs: 0 });
    expect(await redis.pttl(A.queue)).toBeGreaterThan(15_000);
  });

  it('warns the callers behind those that it lets in together once, not for each of them', async () => {
    const [writer, last] = [token(), token()];
    await acquire(writer);
    const readers = Array.from({ length: 50 }, () => alive(token('shared')));
    await standAt(A, ...readers, `${last} 1000 others`);
    const others = redis.duplicate();
    let warnings = 0;
    await others.subscribe('others');
    others.on('message', () => (warnings += 1));
    await release(writer);
    await redis.publish('others', 'end');
    await eventually(() => warnings > 1);
    expect(warnings).toBe(2);
    others.disconnect();
  });
});
