import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockService, type LockModuleOptions } from 'nestjs-holdfast';
import { acquireScript } from '../../../lib/store/redis/scripts/acquire.js';
import { ChildScript } from '../../support/child-script.js';
import { eventually } from '../../support/eventually.js';
import { watchHandles } from '../../support/no-leaks.js';
import { RedisServer } from '../../support/redis-server.js';
import { watchRejections } from '../../support/scripted-service.js';
import { share } from '../../support/soak.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

/** So long that a waiter who waits for the end of a lease fails its test. */
const LONG_TTL = 60_000;
const SOON_MS = 5_000;

const HAND_OFFS = share(1_000, 10_000);
const PROCESSES = 4;
/** Of one lease, while others wait; the default. */
const TURNS = 16;

const HAND_OFF_SCRIPT = new URL('./hand-offs.ts', import.meta.url);

/** What hand-offs.ts writes down. */
interface HandOff {
  readonly inside: number;
  readonly holder: string;
  readonly pid: string;
  readonly fence: number;
  /** Tokens of those who stand in line. */
  readonly line: readonly (string | undefined)[];
}

function handOffOf(entry: string): HandOff {
  const [inside, holder = '', pid = '', fence, line = ''] = entry.split('|');
  const tokens = line
    .split(',')
    .filter(Boolean)
    .map((member) => member.split(' ')[0]);
  return { inside: Number(inside), holder, pid, fence: Number(fence), line: tokens };
}

const handles = watchHandles();
const rejections = watchRejections();
const services: LockService[] = [];
const children: ChildScript[] = [];
let server: RedisServer;

function serviceAt(url: string, options: Partial<LockModuleOptions> = {}): LockService {
  const service = new LockService({ redis: url, ttl: LONG_TTL, wait: LONG_TTL, ...options });
  services.push(service);
  return service;
}

function start(script: URL, args: readonly string[]): ChildScript {
  const child = new ChildScript(script, args);
  children.push(child);
  return child;
}

const inLine = (key: string): Promise<unknown> => server.command('ZCARD', `{lock:${key}}:queue`);

/** Resolves once so many processes stand in line for the key. */
const lineOf = (key: string, length: number): Promise<unknown> =>
  eventually(async () => (await inLine(key)) === length, { withinMs: 20_000 });

beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await RedisServer.start();
});

afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()));
  await Promise.all(services.splice(0).map((service) => service.shutdown(0)));
});

afterAll(async () => {
  await server.stop();
  await handles.expectNoneOpen();
  await rejections.expectNone();
});

describe('waiting, against a real Redis', () => {
  it.each<[string, number, Pick<LockModuleOptions, 'handoff'>]>([
    ['that all ask Redis', 1, { handoff: false }],
    ['of which eight take turns', 8, {}],
  ])(
    'TR-21 loses no wake-up in thousands of hand-offs among four processes with callers %s',
    async (_which, callers, options) => {
      await server.command('FLUSHALL');
      await server.command('CONFIG', 'RESETSTAT');
      const args = [
        server.url,
        'passed on',
        PROCESSES,
        callers,
        HAND_OFFS,
        JSON.stringify(options),
      ];
      const workers = Array.from({ length: PROCESSES }, () =>
        start(HAND_OFF_SCRIPT, args.map(String)),
      );
      for (const output of await Promise.all(workers.map((worker) => worker.output))) {
        const { longestWaitMs } = JSON.parse(output) as { longestWaitMs: number };
        expect(longestWaitMs).toBeLessThan(LONG_TTL / 2);
      }
      const log = ((await server.command('LRANGE', 'log', '0', '-1')) as string[]).map(handOffOf);
      expect(log.length).toBeGreaterThanOrEqual(HAND_OFFS);
      expect(log.filter(({ inside }) => inside !== 1)).toEqual([]);
      expect(log.filter(({ fence }, at) => at > 0 && fence <= log[at - 1]!.fence)).toEqual([]);
      // Who was given the lock and did not hear of it would have let the claim expire, for the next to find it so.
      expect(await server.command('INFO', 'stats')).toMatch(/^expired_keys:0\r$/m);

      const leases = log.filter(({ holder }, at) => holder !== log[at - 1]?.holder);
      expect(leases.length).toBeGreaterThan(callers === 1 ? HAND_OFFS / 2 : HAND_OFFS / TURNS);
      // The first in line is the next to have it, each time.
      const overtaken = leases.filter(({ line }, at) => {
        const next = leases[at + 1]?.holder;
        return next !== undefined && line[0] !== undefined && line[0] !== next;
      });
      expect(overtaken).toEqual([]);

      const shares = new Map<string, number>();
      for (const { pid } of log) shares.set(pid, (shares.get(pid) ?? 0) + 1);
      expect(shares.size).toBe(PROCESSES);
      expect(Math.min(...shares.values())).toBeGreaterThanOrEqual(log.length / 10);
    },
    120_000,
  );

  it('TR-22 every waiting caller tries again after its subscriber was disconnected', async () => {
    const holder = await serviceAt(server.url).acquire('cut off');
    const waiting = Array.from({ length: 4 }, () => serviceAt(server.url).acquire('cut off'));
    await lineOf('cut off', 4);
    expect(await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub')).toBeGreaterThanOrEqual(4);
    await holder.release(); // told to nobody
    const since = performance.now();
    await Promise.all(waiting.map(async (acquiring) => (await acquiring).release()));
    expect(performance.now() - since).toBeLessThan(SOON_MS);
  });

  it('TR-22 hears of releases again after its subscriber was cut off', async () => {
    const holder = await serviceAt(server.url).acquire('heard again');
    const waiter = serviceAt(server.url);
    const waiting = waiter.acquire('heard again');
    await lineOf('heard again', 1);
    await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(async () =>
      String(await server.command('CLIENT', 'LIST', 'TYPE', 'pubsub')).includes('sub=1'),
    );
    await lineOf('heard again', 1);
    const since = performance.now();
    await holder.release();
    await (await waiting).release();
    expect(performance.now() - since).toBeLessThan(SOON_MS);
  });

  it('TR-24 needs one subscriber connection, and one subscription, for 1,000 keys', async () => {
    const keys = Array.from({ length: 1_000 }, (_, index) => `many:${index}`);
    const holder = serviceAt(server.url);
    for (const key of keys) await holder.acquire(key);
    const waiter = serviceAt(server.url);
    const waiting = Promise.allSettled(keys.map((key) => waiter.acquire(key)));
    await lineOf('many:999', 1);
    await lineOf('many:0', 1);
    // Those of the tests before may still be closing.
    await eventually(async () => {
      const subscribers = String(await server.command('CLIENT', 'LIST', 'TYPE', 'pubsub'));
      expect(subscribers.trim().split('\n')).toHaveLength(1);
      expect(subscribers).toMatch(/ sub=1 psub=0 /);
    });
    await waiter.shutdown();
    await waiting;
  });

  it('TR-25 looks at most once for each lease that it was told of, however many callers wait', async () => {
    const ttlMs = 600;
    const holder = await serviceAt(server.url, { ttl: ttlMs }).acquire('contended');
    const waiting = Array.from({ length: 3 }, () => serviceAt(server.url)).flatMap((service) =>
      Array.from({ length: 20 }, () => service.acquire('contended')),
    );
    await lineOf('contended', 3);
    const commands = await server.commandsSentDuring(async () => {
      await new Promise((resolve) => setTimeout(resolve, 3 * ttlMs));
    });
    const looks = new Map<string, number>();
    for (const [name, sha, ...args] of commands) {
      if (name !== 'evalsha' || sha !== acquireScript.sha) continue;
      const member = String(args[10]); // the keys with their number, and five arguments, come before it
      looks.set(member, (looks.get(member) ?? 0) + 1);
    }
    // The holder renews at a third of its TTL, so that a waiter is told of two thirds of it, or more.
    for (const count of looks.values()) expect(count).toBeLessThanOrEqual(6);
    // Nobody polls by any other command.
    expect(commands.filter(([name]) => !name.startsWith('eval'))).toEqual([]);
    await holder.release();
    await Promise.all(waiting.map(async (acquiring) => (await acquiring).release()));
  });

  it('TR-26 a waiter who gives up leaves the line', async () => {
    const holder = await serviceAt(server.url).acquire('left');
    const controller = new AbortController();
    const cancelled = serviceAt(server.url).acquire('left', { signal: controller.signal });
    const timedOut = serviceAt(server.url).acquire('left', { wait: 3_000 });
    const shutDown = serviceAt(server.url);
    const sentAway = shutDown.acquire('left');
    const outcomes = Promise.allSettled([cancelled, timedOut, sentAway]);
    await lineOf('left', 3);
    controller.abort();
    await shutDown.shutdown();
    const codes = (await outcomes).map(
      (outcome) => ((outcome as PromiseRejectedResult).reason as { code: unknown }).code,
    );
    expect(codes).toEqual([DOMException.ABORT_ERR, 'LOCK_NOT_ACQUIRED', 'LOCK_SERVICE_CLOSED']);
    await lineOf('left', 0);
    await holder.release();
  });

  it('TR-26 a grant that crosses the leaving of its waiter is passed on', async () => {
    const proxy = await TcpProxy.start(server.port);
    const holder = await serviceAt(server.url).acquire('crossed');
    const slow = serviceAt(`redis://127.0.0.1:${proxy.port}`);
    const controller = new AbortController();
    // One that is renewed would begin with the call, before it can leave.
    const crossed = slow.acquire('crossed', { signal: controller.signal, autoExtend: false });
    await lineOf('crossed', 1);
    const looked = proxy.whenClientSends('evalsha');
    await holder.release();
    await looked;
    proxy.pause('to-client');
    await eventually(async () => (await server.command('EXISTS', 'lock:crossed')) === 1);
    controller.abort(new Error('gone'));
    await expect(crossed).rejects.toThrow('gone');
    const next = serviceAt(server.url).acquire('crossed');
    await lineOf('crossed', 1);
    const since = performance.now();
    proxy.resume();
    await (await next).release();
    expect(performance.now() - since).toBeLessThan(SOON_MS);
    await slow.shutdown(0);
    await proxy.stop();
  });

  it('TR-27 answers "held" after one round trip', async () => {
    const holder = await serviceAt(server.url).acquire('taken');
    const other = serviceAt(server.url);
    expect(await other.tryAcquire('taken')).toBeNull();
    const commands = await server.commandsSentDuring(async () => {
      expect(await other.tryAcquire('taken')).toBeNull();
      expect(await other.tryRun('taken', () => 'never')).toMatchObject({ acquired: false });
    });
    expect(commands.map(([name]) => name)).toEqual(['evalsha', 'evalsha']);
    await holder.release();
  });
});
