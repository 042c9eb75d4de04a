import { afterEach, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { LoggedLocks } from './logged.js';

let ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});

async function server(): Promise<RedisServer> {
  const started = await RedisServer.start();
  ends.push(() => started.stop());
  return started;
}

async function open(redis: string): Promise<LoggedLocks> {
  const locks = await LoggedLocks.open({ redis });
  ends.push(() => locks.end());
  return locks;
}

describe('locks that are lost together', () => {
  it('are ten warnings, and a sum at the end', async () => {
    const redis = await server();
    const locks = await open(redis.url);
    const keys = Array.from({ length: 200 }, (_, index) => `order:${String(index)}`);
    const held = await Promise.all(keys.map((key) => locks.acquire(key, { ttl: '6s' })));
    await redis.command('FLUSHALL');
    await eventually(() => held.every(({ isHeld }) => !isHeld), { withinMs: 20_000 });
    await locks.shutdown(0);
    expect(locks.logged).toHaveLength(11);
    expect(locks.logged.slice(0, 9)).toEqual(
      Array.from({ length: 9 }, () => expect.stringMatching(/^Lock "order:\d+" was lost: /)),
    );
    expect(locks.logged[10]).toMatch(
      /^190 more warnings of the same kind within a minute\. The last one: Lock "order:\d+" was lost: /,
    );
  });
});

describe('a user who must not subscribe', () => {
  it('is a warning once for each time, and its end another one', async () => {
    const redis = await server();
    await redis.command(
      'ACL',
      'SETUSER',
      'locks',
      'on',
      '>secret',
      '~*',
      '&*',
      '+@all',
      '-subscribe',
    );
    const locks = await open(redis.url.replace('//', '//locks:secret@'));
    const refused = expect.stringMatching(
      /^Cannot be notified of releases by HOST \(NOPERM .*\)\. Waiting callers poll every 500 ms until it works: allow SUBSCRIBE/,
    );
    const heard = 'Releases at HOST are heard again: waiting callers are woken at once.';
    await eventually(() => {
      expect(locks.logged).toEqual([refused]);
    });
    await redis.command('ACL', 'SETUSER', 'locks', '+subscribe');
    await eventually(
      () => {
        expect(locks.logged).toEqual([refused, heard]);
      },
      { withinMs: 15_000 },
    );
    await redis.command('ACL', 'SETUSER', 'locks', '-subscribe');
    await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(() => {
      expect(locks.logged).toEqual([refused, heard, refused]);
    });
  });
});

describe('a second connection that cannot be opened', () => {
  it('is logged when commands are answered all the same, and not as a matter of rights', async () => {
    const redis = await server();
    const way = await TcpProxy.start(redis.port);
    ends.push(() => way.stop());
    const locks = new LoggedLocks({
      redis: `redis://127.0.0.1:${String(way.port)}`,
      instance: false,
    });
    ends.push(() => locks.end());
    await (await locks.acquire('key')).release();
    way.refuse();
    await locks.open();
    const lock = await locks.acquire('key');
    const waiting = locks.acquire('key');
    await eventually(
      () => {
        expect(locks.logged).toEqual([
          expect.stringMatching(
            /^Cannot be notified of releases by HOST .*Holdfast needs a second connection there\./,
          ),
        ]);
      },
      { withinMs: 15_000 },
    );
    await lock.release();
    await (await waiting).release();
  });

  it('is not logged while nothing is answered: that is logged already', async () => {
    const redis = await server();
    await redis.kill();
    const locks = await open(redis.url);
    await eventually(() => locks.logged.length > 0);
    await locks.acquire('key', { wait: '3s' }).catch(() => undefined);
    expect(locks.logged).toEqual([
      'Redis at HOST is not usable yet: connect ECONNREFUSED HOST. Locks are refused (503) until it is reachable.',
    ]);
  });
});
